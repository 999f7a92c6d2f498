// Package redact removes from texts what may be secret in settings.
//
// Two rules apply. A value that does not have the form that the setting should have, such as a
// secret where the path of its file belongs, is shown nowhere: see [Setting]. Of an address, the
// password is removed from the errors of servers and libraries, which may contain any part of it:
// if a password has an "@" or a "#" that is not escaped, a library takes the rest of it for the
// host.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// address matches a URL, also in quotes, which it must not have.
var address = regexp.MustCompile(
	`^([\x60'"]?[a-z][a-z0-9+.-]*://)(?:[^?]*@)?([^?@]*)(?:\?[^@]*)?$`)

// Address returns a URL without parts that may be secret: user, password and parameters. It returns
// no part of a text that is not clearly a URL or the path of a lease directory.
func Address(text string) string {
	text = strings.TrimSpace(text)
	if parts := address.FindStringSubmatch(text); parts != nil {
		return parts[1] + parts[2]
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok && isPath(path) {
		return text
	}
	return strings.Repeat("…", min(1, len(text)))
}

// shortest is the length from which a part of a password is removed. Shorter ones occur by chance.
const shortest = 4

// Secrets are texts that may not be shown. The zero value has none.
type Secrets struct {
	parts []string // of which no part of four bytes may be shown
	whole []string // which may not be shown as a whole
}

// Of returns what may be secret in addresses: passwords, in each form in which a text may have
// them. A text that is not an address has no secrets.
func Of(addresses ...string) (all Secrets) {
	for _, address := range addresses {
		_, rest, found := strings.Cut(address, "://")
		if !found {
			continue
		}
		u, err := url.Parse(address)
		if err == nil {
			for name, values := range u.Query() {
				if strings.Contains(name, "password") {
					all.parts = with(all.parts, values...)
				}
			}
			if password, ok := u.User.Password(); ok && !strings.Contains(u.Path+u.Fragment, "@") {
				all.parts = with(all.parts, password,
					rest[strings.Index(rest, ":")+1:strings.Index(rest, "@")])
				continue
			}
		}
		// It does not parse as it was meant: all up to the last @ may be the password.
		before := rest[:max(0, strings.LastIndex(rest, "@"))]
		if _, password, ok := strings.Cut(before, ":"); ok {
			all.parts = with(all.parts, password)
		}
	}
	return all
}

// with adds texts, and what they are escaped and unescaped.
func with(all []string, texts ...string) []string {
	for _, text := range texts {
		all = append(all, text, url.QueryEscape(text), url.PathEscape(text),
			url.UserPassword("", text).String())
		if plain, err := url.PathUnescape(text); err == nil {
			all = append(all, plain)
		}
	}
	return all
}

// Join returns all of these secrets.
func Join(all ...Secrets) (joined Secrets) {
	for _, s := range all {
		joined.parts = append(joined.parts, s.parts...)
		joined.whole = append(joined.whole, s.whole...)
	}
	return joined
}

// Text returns text with "…" in place of each secret, and of each part of one.
func (s Secrets) Text(text string) string {
	for _, secret := range s.whole {
		text = strings.ReplaceAll(text, secret, "…")
	}
	if len(s.parts) == 0 {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		n := 0 // how long the part of a secret is that text begins with
		for _, secret := range s.parts {
			for size := max(n+1, shortest); size <= len(text) &&
				strings.Contains(secret, text[:size]); size++ {
				n = size
			}
		}
		if n > 0 {
			out.WriteString("…")
		} else {
			out.WriteByte(text[0])
			n = 1
		}
		text = text[n:]
	}
	return out.String()
}

// Error returns an error whose text is free of secrets. It wraps err.
func (s Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := s.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return redacted{text, err}
}

type redacted struct {
	text string
	err  error
}

func (r redacted) Error() string { return r.text }
func (r redacted) Unwrap() error { return r.err }
