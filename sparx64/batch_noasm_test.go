//go:build !(amd64 || arm64) || purego

package sparx64

var assembly *bool
