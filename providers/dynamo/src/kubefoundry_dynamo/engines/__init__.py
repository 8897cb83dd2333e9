"""The command lines of the engines that Dynamo's workers start."""
