// Command apiserver is kube-apiserver of Kubernetes, built from its published module, for tests. It
// ends when its standard input is closed, so even a killed test does not leave it running.
package main

import (
	"io"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
