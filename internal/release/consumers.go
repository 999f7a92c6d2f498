package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// consumers does what users do with each package: go get, go mod tidy, build, vet, and run the
// program of that package in the folder consumers. It installs the commands, and checks each
// module alone.
func (t *tree) consumers(ctx context.Context, version string, out io.Writer) (err error) {
	if err := t.complete(ctx); err != nil {
		return err
	}
	u, err := t.newUser(ctx, version, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(u.dir)) }()
	engines, err := startEngines(ctx)
	defer func() { err = errors.Join(err, engines.close()) }()
	if err != nil {
		return err
	}
	u.env = append(u.env, engines.env...)

	var failed []error
	for _, m := range t.unreplaced() {
		if err := t.alone(ctx, u, m); err != nil {
			failed = append(failed, err)
		}
	}
	for _, m := range t.released() {
		packages, err := t.packages(ctx, m)
		if err != nil {
			return err
		}
		for _, p := range packages {
			if err := u.use(ctx, m.path, p, filepath.Join(t.dir, t.program(p))); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", p, err))
			}
		}
		if strings.HasPrefix(m.dir, "cmd/") {
			if err := u.install(ctx, m.path); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// tidyAll runs go mod tidy in each module that needs versions which may not be published yet.
func (t *tree) tidyAll(ctx context.Context, out io.Writer) (err error) {
	u, err := t.newUser(ctx, t.next, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(u.dir)) }()
	for _, m := range t.unreplaced() {
		dir := filepath.Join(u.dir, "modules", m.dir)
		if err := t.tidy(ctx, u, m, dir); err != nil {
			return err
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := t.tidied(dir, name)
			if err == nil && text != "" {
				err = os.WriteFile(filepath.Join(t.dir, m.dir, name), []byte(text), 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// environment isolates the go commands that run here. Third-party modules come from the user's
// module cache if they are there.
func environment(ctx context.Context, work, proxy, ours string) ([]string, error) {
	asked, err := command(ctx, work, nil, "go", "env", "GOMODCACHE", "GOPROXY", "GOFLAGS")
	if err != nil {
		return nil, err
	}
	values := append(strings.Split(asked, "\n"), "", "")
	cache := "file://" + filepath.ToSlash(values[0]) + "/cache/download"
	normal := strings.TrimSuffix(values[1], ",direct") // our modules are not published yet
	return []string{
		"GOWORK=off", "GOTOOLCHAIN=local",
		"GOPROXY=file://" + filepath.ToSlash(proxy) + "," + cache + "," + normal,
		"GONOSUMDB=" + ours, "GONOPROXY=", "GOPRIVATE=",
		"GOMODCACHE=" + filepath.Join(work, "mod"), "GOBIN=" + filepath.Join(work, "bin"),
		// The build cache then has builds of the same files in other directories.
		"GOFLAGS=" + strings.TrimSpace(values[2]+" -modcacherw -trimpath"),
	}, nil
}

// alone checks a module without the workspace: its go.mod and go.sum are tidy, and all of it,
// including tests, builds with the required versions.
func (t *tree) alone(ctx context.Context, u user, m mod) error {
	begun := time.Now()
	dir := filepath.Join(u.dir, "modules", m.dir)
	if err := t.tidy(ctx, u, m, dir); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		want, err := t.tidied(dir, name)
		if err != nil {
			return err
		}
		if is, err := os.ReadFile(filepath.Join(t.dir, m.dir, name)); string(is) != want && (err == nil || want != "") {
			return fmt.Errorf("%s/%s is not tidy: run make tidy", m.dir, name)
		}
	}
	if _, err := command(ctx, dir, u.env, "go", "vet", "./..."); err != nil {
		return err
	}
	fmt.Fprintf(u.out, "%-40s is tidy and builds alone, %.1f s\n", m.dir, time.Since(begun).Seconds())
	return nil
}

// tidy copies a module to a folder and runs go mod tidy there.
func (t *tree) tidy(ctx context.Context, u user, m mod, dir string) error {
	goMod, err := t.at(m, u.version)
	if err != nil {
		return err
	}
	files, err := t.files(ctx, m, goMod)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(dir, f.Path()), f); err != nil {
			return err
		}
	}
	_, err = command(ctx, dir, u.env, "go", "mod", "tidy")
	return err
}

// tidied reads a file that go mod tidy wrote, without the sums of our own modules: those are known
// only after their release.
func (t *tree) tidied(dir, name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if name == "go.mod" {
		return string(data), err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, t.modules[0].path) {
			kept.WriteString(line)
		}
	}
	return kept.String(), err
}

// user is a user for whom a proxy serves our modules.
type user struct {
	dir     string
	version string
	env     []string
	out     io.Writer
}

// newUser serves the modules to a new user. The caller removes the user's folder.
func (t *tree) newUser(ctx context.Context, version string, out io.Writer) (u user, err error) {
	u = user{version: version, out: out}
	if u.dir, err = os.MkdirTemp("", "traceflake-consumers-"); err != nil {
		return u, err
	}
	proxy := filepath.Join(u.dir, "proxy")
	if err = t.serve(ctx, proxy, version); err == nil {
		u.env, err = environment(ctx, u.dir, proxy, t.modules[0].path)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(u.dir))
	}
	return u, err
}

// use makes a module that uses one of our packages.
func (u user) use(ctx context.Context, module, path, program string) error {
	begun := time.Now()
	dir := filepath.Join(u.dir, "users", strings.ReplaceAll(path, "/", "-"))
	run := []string{"test", "."}
	for _, s := range sources(program) {
		if err := write(filepath.Join(dir, filepath.Base(s)), file{disk: s}); err != nil {
			return err
		}
		if filepath.Base(s) == "main.go" {
			run = []string{"run", "."}
		}
	}
	var output string
	for _, args := range [][]string{
		{"mod", "init", "example.com/user"}, {"get", module + "@" + u.version}, {"mod", "tidy"},
		{"build", "./..."}, {"vet", "./..."}, run,
	} {
		var err error
		if output, err = command(ctx, dir, u.env, "go", args...); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	result, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return err
	}
	last := output[strings.LastIndex(output, "\n")+1:]
	fmt.Fprintf(u.out, "%-40s %s, %.1f s\n", path, last, time.Since(begun).Seconds())
	for _, r := range result.Require {
		kind := "requires"
		if r.Indirect {
			kind = "indirectly"
		}
		fmt.Fprintf(u.out, "    %-10s %s %s\n", kind, r.Mod.Path, r.Mod.Version)
	}
	return nil
}

// install installs a command as users do, and runs it with --help.
func (u user) install(ctx context.Context, path string) error {
	begun := time.Now()
	if _, err := command(ctx, u.dir, u.env, "go", "install", path+"@"+u.version); err != nil {
		return err
	}
	help, err := command(ctx, u.dir, u.env, filepath.Join(u.dir, "bin", filepath.Base(path)), "--help")
	if err != nil || help == "" {
		return fmt.Errorf("%s --help: %q, %w", path, help, err)
	}
	first, _, _ := strings.Cut(help, "\n")
	fmt.Fprintf(u.out, "%-40s installed: %s %.1f s\n", path, first, time.Since(begun).Seconds())
	return nil
}

// write copies a file.
func write(to string, from interface{ Open() (io.ReadCloser, error) }) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	r, err := from.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// engines are the servers whose addresses the programs get from their environment.
type engines struct {
	env      []string
	postgres *servers.PostgresServer
	etcd     *etcd.Cluster
	s3       *s3.Server
}

func startEngines(ctx context.Context) (e engines, err error) {
	if e.postgres, err = servers.Postgres(ctx); err != nil {
		return e, err
	}
	if e.etcd, err = etcd.Start(ctx, 1); err != nil {
		return e, err
	}
	if e.s3, err = s3.Start(ctx); err != nil {
		return e, err
	}
	const bucket = "consumers"
	if _, _, err := e.s3.Do(ctx, http.MethodPut, "/"+bucket, nil); err != nil {
		return e, err
	}
	e.env = []string{
		"POSTGRES_URL=" + e.postgres.DSN(), "ETCD_URL=etcd://" + strings.Join(e.etcd.Endpoints(), ","),
		"S3_URL=s3://" + bucket + "?endpoint=" + e.s3.Endpoint(),
		"AWS_ACCESS_KEY_ID=" + s3.Root.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3.Root.SecretKey,
	}
	return e, nil
}

func (e engines) close() (err error) {
	if e.postgres != nil {
		err = e.postgres.Close()
	}
	if e.etcd != nil {
		err = errors.Join(err, e.etcd.Close())
	}
	if e.s3 != nil {
		err = errors.Join(err, e.s3.Close())
	}
	return err
}
