package k8sstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// plugin is a command of a kubeconfig that makes credentials, as cloud providers
// have them.
type plugin struct {
	APIVersion string `yaml:"apiVersion"`
	Command    string
	Args       []string
	Env        []struct{ Name, Value string }

	InteractiveMode    string `yaml:"interactiveMode"`
	InstallHint        string `yaml:"installHint"`
	ProvideClusterInfo bool   `yaml:"provideClusterInfo"`
}

// credentials are what a plugin made.
type credentials struct {
	token, cert, key string
	expires          time.Time // zero if they do not, or there are none
}

// over reports whether new ones are needed.
func (c credentials) over() bool {
	if c.token == "" && c.cert == "" {
		return true
	}
	return !c.expires.IsZero() && time.Until(c.expires) < 10*time.Second
}

// check finds the command, which may be relative to the folder of the
// kubeconfig.
func (p *plugin) check(dir string) error {
	switch {
	case p.Command == "":
		return errors.New("exec has no command")
	case !strings.HasPrefix(p.APIVersion, "client.authentication.k8s.io/"):
		return fmt.Errorf("exec has apiVersion %q, want one of client.authentication.k8s.io", p.APIVersion)
	case p.InteractiveMode == "Always":
		return errors.New("exec wants a terminal (interactiveMode: Always)")
	}
	if strings.ContainsRune(p.Command, filepath.Separator) && !filepath.IsAbs(p.Command) {
		p.Command = filepath.Join(dir, p.Command)
	}
	return nil
}

// info tells the command what is expected of it.
func (p *plugin) info(a access) (string, error) {
	spec := map[string]any{"interactive": false}
	if p.ProvideClusterInfo {
		spec["cluster"] = map[string]any{
			"server":                     a.server,
			"tls-server-name":            a.transport.serverName,
			"insecure-skip-tls-verify":   a.transport.insecure,
			"certificate-authority-data": []byte(a.transport.ca),
			"proxy-url":                  a.transport.proxy,
		}
	}
	b, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": spec})
	return "KUBERNETES_EXEC_INFO=" + string(b), err
}

// run runs the command, which must not ask anything.
func (p *plugin) run(ctx context.Context, a access) (credentials, error) {
	info, err := p.info(a)
	if err != nil {
		return credentials{}, err
	}
	cmd := exec.CommandContext(ctx, p.Command, p.Args...)
	cmd.Env = append(os.Environ(), info)
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.WaitDelay = time.Second // for what it started
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		if cause := ctx.Err(); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		hint := ""
		if errors.Is(err, exec.ErrNotFound) && p.InstallHint != "" {
			hint = ": " + p.InstallHint
		}
		return credentials{}, fmt.Errorf("exec %s: %w %s%s", p.Command, err, excerpt(log.Bytes()), hint)
	}
	var answer struct {
		Kind   string
		Status struct {
			Token                 string
			ClientCertificateData string
			ClientKeyData         string
			ExpirationTimestamp   time.Time
		}
	}
	// What it wrote is a secret.
	if json.Unmarshal(out.Bytes(), &answer) != nil || answer.Kind != "ExecCredential" {
		return credentials{}, fmt.Errorf("exec %s: its output is no ExecCredential", p.Command)
	}
	s := answer.Status
	if s.Token == "" && (s.ClientCertificateData == "" || s.ClientKeyData == "") {
		return credentials{}, fmt.Errorf("exec %s: it made no token and no certificate", p.Command)
	}
	return credentials{s.Token, s.ClientCertificateData, s.ClientKeyData, s.ExpirationTimestamp}, nil
}
