//go:build !linux || !amd64

package main

func step(int, place, int) (threads [2]steps, err error) { return threads, errNoStepping }
