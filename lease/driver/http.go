package driver

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// ParseServer parses the URL of a server of HTTP, and removes slashes at its end. Its error does
// not contain the URL, which may contain a password.
func ParseServer(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the server's URL: want https://host:port")
	}
	return u, nil
}

// WithoutRedirects returns a client with the settings of another, which returns a redirect as the
// response: following it would turn a write into a read, or send credentials to another server.
func WithoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &own
}
