package k8sstore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is what is read of a kubeconfig file. Several are merged: the first
// one that names something says what it is.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Clusters       []struct {
		Name    string
		Cluster cluster
	}
	Users []struct {
		Name string
		User user
	}
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User, Namespace string }
	}
}

type cluster struct {
	dir                      string
	Server                   string
	CertificateAuthority     string `yaml:"certificate-authority"`
	CertificateAuthorityData string `yaml:"certificate-authority-data"`
	TLSServerName            string `yaml:"tls-server-name"`
	InsecureSkipTLSVerify    bool   `yaml:"insecure-skip-tls-verify"`
	ProxyURL                 string `yaml:"proxy-url"`
}

type user struct {
	dir                   string
	Token                 string
	TokenFile             string `yaml:"tokenFile"`
	ClientCertificate     string `yaml:"client-certificate"`
	ClientCertificateData string `yaml:"client-certificate-data"`
	ClientKey             string `yaml:"client-key"`
	ClientKeyData         string `yaml:"client-key-data"`
	Exec                  *plugin

	// What is refused: it would be another user otherwise.
	Username     string
	As           string
	AuthProvider any `yaml:"auth-provider"`
}

// fromKubeconfig reads how the files say to reach the server of a context; the
// default is their current one. Files that do not exist are left out if there is
// another.
func fromKubeconfig(files []string, context string) (access, error) {
	var all kubeconfig
	var errs []error
	found := 0
	for _, file := range files {
		k, err := readKubeconfig(file)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				return access{}, err
			}
			errs = append(errs, err)
			continue
		}
		found++
		if all.CurrentContext == "" {
			all.CurrentContext = k.CurrentContext
		}
		all.Clusters = append(all.Clusters, k.Clusters...)
		all.Users = append(all.Users, k.Users...)
		all.Contexts = append(all.Contexts, k.Contexts...)
	}
	if found == 0 {
		return access{}, fmt.Errorf("kubeconfig: %w", errors.Join(errs...))
	}
	a, err := all.access(context)
	if err != nil {
		return access{}, fmt.Errorf("kubeconfig %s: %w", strings.Join(files, ", "), err)
	}
	return a, nil
}

func readKubeconfig(file string) (k kubeconfig, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return k, err
	}
	if yaml.Unmarshal(b, &k) != nil { // the error would have parts of the file, which has secrets
		return k, fmt.Errorf("kubeconfig %s is not YAML of the right shape", file)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	for i := range k.Clusters {
		k.Clusters[i].Cluster.dir = dir
	}
	for i := range k.Users {
		k.Users[i].User.dir = dir
	}
	return k, err
}

func (k kubeconfig) access(context string) (access, error) {
	if context == "" {
		context = k.CurrentContext
	}
	if context == "" {
		return access{}, errors.New("it has no current-context: say which with ?context=NAME")
	}
	for _, c := range k.Contexts {
		if c.Name != context {
			continue
		}
		a := access{context: context, namespace: c.Context.Namespace}
		if err := k.cluster(&a, c.Context.Cluster); err != nil {
			return access{}, err
		}
		return a, k.user(&a, c.Context.User)
	}
	return access{}, fmt.Errorf("it has no context %q", context)
}

func (k kubeconfig) cluster(a *access, name string) (err error) {
	for _, n := range k.Clusters {
		if n.Name != name {
			continue
		}
		c := n.Cluster
		u, err := url.Parse(c.Server)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("the server of cluster %q is %q, want https://host:port", name, c.Server)
		}
		a.server = strings.TrimRight(c.Server, "/")
		a.transport.serverName, a.transport.insecure, a.transport.proxy = c.TLSServerName, c.InsecureSkipTLSVerify, c.ProxyURL
		a.transport.ca, err = content(c.dir, "certificate-authority", c.CertificateAuthority, c.CertificateAuthorityData)
		return err
	}
	return fmt.Errorf("it has no cluster %q", name)
}

func (k kubeconfig) user(a *access, name string) (err error) {
	for _, n := range k.Users {
		if n.Name != name {
			continue
		}
		u := n.User
		switch {
		case u.Username != "":
			return fmt.Errorf("user %q has a user name and a password, which Kubernetes has not accepted since 1.19", name)
		case u.AuthProvider != nil:
			return fmt.Errorf("user %q has an auth-provider: use the exec plugin that replaced it", name)
		case u.As != "":
			return fmt.Errorf("user %q impersonates %q, which is not supported: use that one's credentials", name, u.As)
		}
		if a.token = u.Token; u.TokenFile != "" {
			if a.token, err = content(u.dir, "tokenFile", u.TokenFile, ""); err != nil {
				return err
			}
		}
		if a.transport.cert, err = content(u.dir, "client-certificate", u.ClientCertificate, u.ClientCertificateData); err != nil {
			return err
		}
		if a.transport.key, err = content(u.dir, "client-key", u.ClientKey, u.ClientKeyData); err != nil {
			return err
		}
		if u.Exec != nil && a.token == "" && a.transport.cert == "" {
			a.plugin = u.Exec
			return u.Exec.check(u.dir)
		}
		return nil
	}
	return fmt.Errorf("it has no user %q", name)
}

// content returns what a field has, as a file or as data in base64, or "".
func content(dir, field, file, data string) (string, error) {
	if data != "" {
		b, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return "", fmt.Errorf("%s-data is not base64", field)
		}
		return string(b), nil
	}
	if file == "" {
		return "", nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", fmt.Errorf("%s: %s is empty", field, file)
	}
	return text, nil
}
