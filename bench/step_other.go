//go:build !linux || !amd64

package main

func step(int, uintptr, int) (threads [2]steps, err error) { return threads, errNoStepping }
