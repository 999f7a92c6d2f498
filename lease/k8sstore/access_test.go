package k8sstore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantText(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %q does not say %q", what, err, text)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: error %q has a secret", what, err)
	}
}

func TestInCluster(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := inCluster(dir)
	wantText(t, "outside of a cluster", err, "KUBERNETES_SERVICE_HOST")
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err = inCluster(dir)
	wantText(t, "no account", err, "token", "ca.crt", "namespace", "automountServiceAccountToken")
	write(t, filepath.Join(dir, "token"), "a token\n")
	write(t, filepath.Join(dir, "ca.crt"), "a certificate\n")
	write(t, filepath.Join(dir, "namespace"), "\n")
	_, err = inCluster(dir)
	wantText(t, "an empty namespace", err, "namespace is empty")
	write(t, filepath.Join(dir, "namespace"), "shop")
	a, err := inCluster(dir)
	want := access{server: "https://[fd00::1]:443", namespace: "shop", token: "a token", transport: transport{ca: "a certificate"}}
	if err != nil || a != want {
		t.Errorf("got %+v, %v, want %+v", a, err, want)
	}
}

// config is a kubeconfig with one context, a.
func config(cluster, user string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: a, context: {cluster: b, user: c, namespace: shop}}
- {name: other, context: {cluster: b, user: c}}
- {name: no-user, context: {cluster: b, user: nobody}}
- {name: no-cluster, context: {cluster: nowhere, user: c}}
clusters:
- {name: b, cluster: {server: "https://host:6443/", %s}}
users:
- {name: c, user: {%s}}
`, cluster, user)
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	write(t, filepath.Join(dir, "token"), "of a file\n")
	write(t, filepath.Join(dir, "pem"), "-----BEGIN\n")
	data := base64.StdEncoding.EncodeToString([]byte("inline"))
	base := access{server: "https://host:6443", context: "a", namespace: "shop"}
	for _, c := range []struct {
		cluster, user, context string
		want                   func(*access)
	}{
		{"", "", "", func(*access) {}},
		{"", "", "other", func(a *access) { a.context, a.namespace = "other", "" }},
		{"", "token: hunter2", "", func(a *access) { a.token = "hunter2" }},
		{"", "token: hunter2, tokenFile: token", "", func(a *access) { a.token = "of a file" }},
		{"", "tokenFile: " + filepath.Join(dir, "token"), "", func(a *access) { a.token = "of a file" }},
		{"", "client-certificate: pem, client-key: pem", "", func(a *access) { a.transport.cert, a.transport.key = "-----BEGIN", "-----BEGIN" }},
		{"", "client-certificate-data: " + data + ", client-key-data: " + data, "", func(a *access) { a.transport.cert, a.transport.key = "inline", "inline" }},
		{"certificate-authority: pem", "", "", func(a *access) { a.transport.ca = "-----BEGIN" }},
		{"certificate-authority-data: " + data, "", "", func(a *access) { a.transport.ca = "inline" }},
		{"insecure-skip-tls-verify: true, tls-server-name: name, proxy-url: http://proxy", "", "", func(a *access) {
			a.transport.insecure, a.transport.serverName, a.transport.proxy = true, "name", "http://proxy"
		}},
	} {
		want := base
		c.want(&want)
		got, err := fromKubeconfig([]string{write(t, file, config(c.cluster, c.user))}, c.context)
		if err != nil || got != want {
			t.Errorf("%s %s: got %+v, %v, want %+v", c.cluster, c.user, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"apiVersion: v1":       "no current-context",
		"current-context: a":   `no context "a"`,
		"users: {a: hunter2}":  "not YAML of the right shape",
		"%":                    "not YAML of the right shape",
		config("", "as: root"): "impersonates",
		config("", "username: me, password: hunter2"): "1.19",
		config("", "auth-provider: {name: gcp}"):      "exec plugin",
		config("", "tokenFile: missing"):              "missing",
		config("", "client-key-data: hunter2!"):       "client-key-data is not base64",
		config("", "exec: {command: x}"):              "apiVersion",
		config("", "exec: {apiVersion: v1}"):          "no command",
		config("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}"): "terminal",
		config("certificate-authority: missing", ""):                                                           "missing",
		strings.Replace(config("", ""), "https://", "", 1):                                                     "want https://host:port",
		strings.Replace(config("", ""), "xt: a", "xt: no-user", 1):                                             `no user "nobody"`,
		strings.Replace(config("", ""), "xt: a", "xt: no-cluster", 1):                                          `no cluster "nowhere"`,
	} {
		_, err := fromKubeconfig([]string{write(t, file, text)}, "")
		wantText(t, text, err, file, want)
	}
	_, err := fromKubeconfig([]string{filepath.Join(dir, "missing")}, "")
	wantText(t, "no file", err, "missing")
}

// The first file that names something says what it is; paths are relative to
// their own file.
func TestKubeconfigsAreMerged(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, filepath.Join(one, "token"), "one")
	write(t, filepath.Join(two, "token"), "two")
	first := write(t, filepath.Join(one, "config"), `{"users": [{"name": "c", "user": {"tokenFile": "token"}}]}`)
	second := write(t, filepath.Join(two, "config"), config("", "tokenFile: token"))
	for want, files := range map[string][]string{
		"one": {filepath.Join(one, "missing"), first, second},
		"two": {second, first},
	} {
		a, err := fromKubeconfig(files, "")
		if err != nil || a.token != want || a.namespace != "shop" {
			t.Errorf("%v: got %+v, %v", files, a, err)
		}
	}
}

// Where a store finds its server, from the most to the least specific.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := func(token string) string { return config("", "token: "+token) }
	write(t, filepath.Join(dir, ".kube", "config"), text("home"))
	file := write(t, filepath.Join(dir, "file"), text("file"))
	variable := write(t, filepath.Join(dir, "variable"), text("variable"))
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", variable)
	t.Setenv("KUBERNETES_SERVICE_HOST", "host")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	want := func(what, token string, read func() (access, error)) {
		t.Helper()
		if a, err := read(); err != nil || a.token != token {
			t.Errorf("%s: got %+v, %v", what, a, err)
		}
	}
	want("the URL's file", "file", source(file, ""))
	want("the variable", "variable", source("", ""))
	t.Setenv("KUBECONFIG", "")
	if _, err := os.Stat(accountDir); err != nil {
		_, err := source("", "")()
		wantText(t, "a pod without an account", err, accountDir)
	}
	want("a context of the user's file", "home", source("", "a"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	want("the user's file", "home", source("", ""))
	if a, err := source(file, "other")(); err != nil || a.namespace != "default" {
		t.Errorf("a context without a namespace: %+v, %v", a, err)
	}
}

func TestAddress(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
	defer server.Close()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", write(t, filepath.Join(t.TempDir(), "config"), strings.Replace(config("", ""), "https://host:6443/", server.URL, 1)))
	for _, c := range []struct{ url, namespace, name string }{
		{"k8s://", "shop", DefaultName},
		{"k8s:///", "shop", DefaultName},
		{"k8s:///orders", "shop", "orders"},
		{"k8s://other/orders/", "other", "orders"},
		{"k8s://other?context=other", "other", DefaultName},
		{"k8s:///orders?context=other", "default", "orders"},
	} {
		s, err := openURL(t.Context(), c.url, driver.NodeRange{})
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		_, err = s.List(t.Context())
		wantText(t, c.url, err, "no API server of Kubernetes")
		if want := "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases/" + c.name + ".config"; asked != want {
			t.Errorf("%s: asks for %s, want %s", c.url, asked, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_, err = s.List(t.Context())
		wantText(t, c.url+" after close", err, "closed")
	}
	for url, want := range map[string]string{
		"k8s:":                          "k8s://namespace/name",
		"k8s:shop/orders":               "k8s://namespace/name",
		"k8s://user:hunter2@shop/":      "k8s://namespace/name",
		"k8s://shop:6443/":              "k8s://namespace/name",
		"k8s://shop/#orders":            "k8s://namespace/name",
		"k8s://shop/a?server=x":         `"server"`,
		"k8s://Shop/a":                  `"Shop"`,
		"k8s://shop/a.b":                `"a.b"`,
		"k8s://shop/a/b":                `"a/b"`,
		"k8s://shop/?context=nowhere":   `"nowhere"`,
		"k8s://shop/?kubeconfig=/no/it": "/no/it",
	} {
		_, err := openURL(t.Context(), url, driver.NodeRange{})
		wantText(t, url, err, "k8sstore: ", want)
	}
}

// A plugin is run when credentials are missing, refused or over, and not for
// each request.
func TestPlugin(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	answer := `{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "of run '$N'"%s}}`
	script := func(expires string) string {
		return "#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO $EXTRA $1\" >>" + runs + "\nN=$(wc -l <" + runs + ")\necho '" +
			fmt.Sprintf(answer, expires) + "'\n"
	}
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if len(seen) == 3 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"kind": "PartialObjectMetadataList"}`)
	}))
	defer server.Close()
	kubeconfig := strings.Replace(config("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [arg], "+
		"env: [{name: EXTRA, value: extra}], provideClusterInfo: true}"), "https://host:6443/", server.URL, 1)
	file := write(t, filepath.Join(dir, "config"), kubeconfig)
	versions := func(times int) {
		t.Helper()
		s, err := newSession(func() (access, error) { return fromKubeconfig([]string{file}, "") })
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		o := &objects{api: api{s.connect}, namespace: "shop", name: "orders"}
		for range times {
			if _, err := o.Versions(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, filepath.Join(dir, "plugin"), script(""))
	versions(3)
	want := []string{"Bearer of run 1", "Bearer of run 1", "Bearer of run 1", "Bearer of run 2"}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", seen, want)
	}
	log, err := os.ReadFile(runs)
	if err != nil || !strings.Contains(string(log), `"server":"`+server.URL+`"`) || !strings.Contains(string(log), "} extra arg\n") {
		t.Errorf("the plugin was told %s, %v", log, err)
	}

	seen = make([]string, 10)
	write(t, filepath.Join(dir, "plugin"), script(`, "expirationTimestamp": "`+time.Now().Add(time.Second).UTC().Format(time.RFC3339)+`"`))
	versions(2)
	if got := strings.Join(seen[10:], ", "); got != "Bearer of run 3, Bearer of run 4" {
		t.Errorf("with tokens that are over: got %s", got)
	}

	for text, want := range map[string]string{
		"#!/bin/sh\necho no login >&2\nexit 3\n":             "no login",
		"#!/bin/sh\necho hunter2\n":                          "no ExecCredential",
		"#!/bin/sh\necho '{\"kind\": \"ExecCredential\"}'\n": "no token",
	} {
		write(t, filepath.Join(dir, "plugin"), text)
		s, err := newSession(func() (access, error) { return fromKubeconfig([]string{file}, "") })
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.connect(t.Context(), false)
		wantText(t, text, err, "plugin", want)
	}
}

// A process keeps its context, and never goes on at another server: that one has other leases.
func TestServerStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	put := func(current, a string) {
		write(t, file, fmt.Sprintf(`current-context: %s
clusters:
- {name: a, cluster: {server: "https://%s.example"}}
- {name: b, cluster: {server: "https://b.example"}}
users:
- {name: u, user: {token: t}}
contexts:
- {name: a, context: {cluster: a, user: u}}
- {name: b, context: {cluster: b, user: u}}
`, current, a))
	}
	put("a", "a")
	s, err := newSession(source(file, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []struct{ current, a, want string }{
		{"a", "a", "https://a.example"},
		{"b", "a", "https://a.example"},
		{"a", "elsewhere", ""},
	} {
		put(now.current, now.a)
		s.since = time.Now().Add(-2 * reread)
		c, err := s.connect(t.Context(), false)
		switch {
		case now.want == "":
			wantText(t, "another server", err, "a.example", "elsewhere.example", "restart")
			if !errors.Is(err, lease.ErrMisconfigured) {
				t.Errorf("got error %v, want ErrMisconfigured", err)
			}
		case err != nil || c.server != now.want:
			t.Errorf("%+v: got %s, %v", now, c.server, err)
		}
	}
}
