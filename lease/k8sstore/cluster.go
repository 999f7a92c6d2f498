package k8sstore

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// accountDir is where the kubelet mounts the service account of a pod.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// inCluster reads how a pod reaches the API server of its cluster.
func inCluster(dir string) (access, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return access{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod")
	}
	read := func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("the pod's service account: %w (is automountServiceAccountToken false?)", err)
		}
		if len(strings.TrimSpace(string(b))) == 0 {
			return "", fmt.Errorf("the pod's service account: %s is empty", filepath.Join(dir, name))
		}
		return strings.TrimSpace(string(b)), nil
	}
	a := access{server: "https://" + net.JoinHostPort(host, port)}
	var errs [3]error
	a.token, errs[0] = read("token")
	a.transport.ca, errs[1] = read("ca.crt")
	a.namespace, errs[2] = read("namespace")
	return a, errors.Join(errs[:]...)
}
