package main

import _ "golang.org/x/sys/unix"

func main() {}
