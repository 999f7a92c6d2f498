package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// release makes the commit and the tags of a version in a copy of the repository, and shows
// them. With publish it applies them.
func release(ctx context.Context, root, version string, publish bool, out io.Writer) (err error) {
	if err := allowed(ctx, root, version); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "traceflake-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	dir := filepath.Join(work, "tree")
	if _, err := command(ctx, root, nil, "git", "clone", "--quiet", "--no-hardlinks", ".", dir); err != nil {
		return err
	}
	t, err := prepare(dir, version, time.Now())
	if err != nil {
		return err
	}
	git := func(args ...string) (string, error) { return command(ctx, dir, nil, "git", args...) }
	diff, err := git("diff", "--stat")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The commit %q:\n%s\n\n", "release "+version, diff)
	if err := t.changes(ctx, work, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nUsing it as users do:")
	if err := t.consumers(ctx, version, out); err != nil {
		return err
	}
	tags := t.tags(version)
	fmt.Fprintf(out, "\nThe tags:\n  %s\n", strings.Join(tags, "\n  "))
	if !publish {
		fmt.Fprintln(out, "\nThis was a dry run; nothing has changed. With PUBLISH=yes it makes the commit and the tags.")
		return nil
	}
	author, err := command(ctx, root, nil, "git", "var", "GIT_COMMITTER_IDENT")
	if err != nil {
		return err
	}
	name, rest, _ := strings.Cut(author, " <")
	mail, _, _ := strings.Cut(rest, ">")
	if _, err := git("-c", "user.name="+name, "-c", "user.email="+mail, "commit", "-qam", "release "+version); err != nil {
		return err
	}
	if _, err := command(ctx, root, nil, "git", "pull", "--quiet", "--ff-only", dir, "HEAD"); err != nil {
		return err
	}
	for _, tag := range tags {
		if _, err := command(ctx, root, nil, "git", "tag", "-a", "-m", tag, tag); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nDone. To publish it:\n  git push --atomic origin HEAD %s\n", strings.Join(tags, " "))
	return nil
}

// allowed checks that the version may be released from the committed tree.
func allowed(ctx context.Context, root, version string) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version: want one such as v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("%s: from v2 on, module paths must end in /%s", version, major)
	}
	changes, err := command(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("commit or discard these changes first:\n%s", changes)
	}
	last, err := lastRelease(ctx, root)
	if err == nil && semver.Compare(version, last) <= 0 {
		err = fmt.Errorf("%s is not later than the last release, %s", version, last)
	}
	return err
}

// lastRelease returns the highest version among the root module's tags, or "".
func lastRelease(ctx context.Context, root string) (last string, err error) {
	tags, err := command(ctx, root, nil, "git", "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	for tag := range strings.FieldsSeq(tags) {
		if semver.IsValid(tag) && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	return last, nil
}

// prepare makes the changes of a release.
func prepare(dir, version string, now time.Time) (*tree, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "CHANGELOG.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	changelog, err := closeChangelog(string(text), version, now)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(name, []byte(changelog), 0o644); err != nil {
		return nil, err
	}
	if err := t.setVersion(version); err != nil {
		return nil, err
	}
	return openTree(dir)
}

// closeChangelog renames the section of unreleased changes to the version, and adds a new one.
func closeChangelog(text, version string, now time.Time) (string, error) {
	const unreleased = "## [Unreleased]\n"
	before, after, found := strings.Cut(text, unreleased)
	section, _, _ := strings.Cut(after, "\n## ")
	entries := false
	for line := range strings.Lines(section) {
		entries = entries || strings.HasPrefix(line, "- ")
	}
	if !found || !entries {
		return "", errors.New("CHANGELOG.md has no entries under \"## [Unreleased]\": describe the changes for users")
	}
	title := fmt.Sprintf("## [%s] - %s\n", strings.TrimPrefix(version, "v"), now.UTC().Format(time.DateOnly))
	return before + unreleased + "\n" + title + after, nil
}

// tags has one tag for each module, in the form that the go command expects.
func (t *tree) tags(version string) (tags []string) {
	for _, m := range t.released() {
		tag := m.dir + "/" + version
		if m.dir == "." {
			tag = version
		}
		tags = append(tags, tag)
	}
	return tags
}

// changes shows how the public surface differs from that of the last release.
func (t *tree) changes(ctx context.Context, work string, out io.Writer) error {
	last, err := lastRelease(ctx, t.dir)
	if err != nil {
		return err
	}
	if last == "" {
		fmt.Fprintln(out, "There is no release to compare the public surface with.")
		return nil
	}
	tool := filepath.Join(work, "apidiff")
	if err := buildTool(ctx, filepath.Join(t.dir, "internal/release"), tool); err != nil {
		return err
	}
	return t.compare(ctx, tool, last, filepath.Join(work, "last"), out)
}

// buildTool builds the version of apidiff that our go.mod names.
func buildTool(ctx context.Context, dir, to string) error {
	_, err := command(ctx, dir, nil, "go", "build", "-o", to, "golang.org/x/exp/cmd/apidiff")
	return err
}

// compare checks a tag out into a folder and compares each module with its state there.
func (t *tree) compare(ctx context.Context, tool, tag, folder string, out io.Writer) error {
	if _, err := command(ctx, t.dir, nil, "git", "worktree", "add", "--quiet", "--detach", folder, tag); err != nil {
		return err
	}
	before, err := openTree(folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "What has changed for users since %s:\n", tag)
	for _, m := range t.released() {
		i := slices.IndexFunc(before.released(), func(o mod) bool { return o.path == m.path })
		if i < 0 {
			fmt.Fprintf(out, "%s: new\n", m.path)
			continue
		}
		surface := folder + ".surface"
		_, err := command(ctx, filepath.Join(folder, before.released()[i].dir), nil, tool, "-m", "-w", surface, m.path)
		if err != nil {
			return err
		}
		report, err := command(ctx, filepath.Join(t.dir, m.dir), nil, tool, "-m", surface, m.path)
		if err != nil {
			return err
		}
		if report == "" {
			report = "nothing"
		}
		fmt.Fprintf(out, "%s: %s\n", m.path, report)
	}
	return nil
}
