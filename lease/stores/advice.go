package stores

import (
	"cmp"
	"regexp"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// misread are mistakes in URLs that a store may open, as another address or password than was
// meant.
var misread = []mistake{
	{regexp.MustCompile(`<no value>|\{\{|\$[({]\w+[)}]`),
		"set what the URL refers to: a placeholder was not replaced"},
	{regexp.MustCompile(`^[\w-]+://[^/?#]*@[^/?#]*@`), special},
}

const special = "write special characters of the password as %XX: / is %2F, @ is %40, # is %23, " +
	"? is %3F, [ is %5B, a space is %20"

type mistake struct {
	pattern *regexp.Regexp
	fix     string
}

// mistakes are in URLs that cannot be opened, in the order in which they are looked for.
var mistakes = append(misread, []mistake{
	{regexp.MustCompile(`^["'\x60]`),
		"remove the quotes, which a shell removes and a file of variables does not"},
	{regexp.MustCompile(`\s#`),
		"remove the comment: in a file of variables it belongs to the value"},
	{regexp.MustCompile(`^[A-Za-z0-9+.-]*[A-Z][A-Za-z0-9+.-]*:`),
		"write the kind of store in lower case"},
	{regexp.MustCompile(`^\w+://([^/?#]*@)?[0-9a-f]*:[0-9a-f]*:[0-9a-f:]*(/|$)`),
		"write the IPv6 address in brackets: [::1]:5432"},
	{regexp.MustCompile(`%%|%([^0-9A-Fa-f]|$)|%[0-9A-Fa-f]([^0-9A-Fa-f]|$)`),
		"write a % in the password as %25, and other special characters in the same way; a unit " +
			"of systemd, and only that, doubles each %"},
	{regexp.MustCompile(`^\w+://[^@/]*:\d*[^@/?#\d][^@/?#]*[/?#\[\] ][^@]*@|@[^/]*@`),
		special},
	{regexp.MustCompile(`^jdbc:|^\w+\+\w+://`),
		"write postgres:// alone: jdbc: and +driver are of other libraries"},
	{regexp.MustCompile(`^(\w+=\S* +)*(host|dbname|user)=`),
		"write postgres://user:password@host:port/database: the store needs a URL"},
	{regexp.MustCompile(`^https?://`), "write the kind of the store in place of http: " +
		"etcd://host:port, s3://bucket?endpoint=https://… or k8s://namespace/name?server=https://…"},
	{regexp.MustCompile(`^/`), "write file: before the path of a lease directory"},
	{regexp.MustCompile(`^[0-9A-Fa-f]{32}$`),
		"set the URL of the store here, and this value, a secret, as TRACEFLAKE_SECRET"},
}...)

// advise adds what an operator can do to the error of a URL that cannot be opened.
func advise(url string, err error) error {
	err = driver.Diagnose(err) // of a file that the URL names
	if lease.Fix(err) != "" {
		return err
	}
	return &lease.Error{Err: err, Fix: cmp.Or(fixOf(url, mistakes), "correct the URL of the store")}
}

// fixOf returns the fix of the first of these mistakes in a URL, or "".
func fixOf(url string, all []mistake) string {
	for _, m := range all {
		if m.pattern.MatchString(url) {
			return m.fix
		}
	}
	return ""
}

// invalid is an error of a URL. Its text is that of err alone.
type invalid struct{ error }

func (e invalid) Unwrap() []error { return []error{e.error, lease.ErrInvalidRequest} }
