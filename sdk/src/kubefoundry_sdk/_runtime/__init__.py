"""Parts of every process: watches, stores, queues, the Lease, writes and reports."""
