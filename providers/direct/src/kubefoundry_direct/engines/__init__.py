"""The command lines of the engines that `direct` starts."""
