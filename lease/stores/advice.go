package stores

import (
	"cmp"
	"regexp"

	"github.com/traceflake/traceflake/internal/mistakes"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// wrong are the mistakes in URLs of stores that cannot be opened, besides those of other servers'.
var wrong = []mistakes.Mistake{
	{Pattern: regexp.MustCompile(`^jdbc:|^\w+\+\w+://`),
		Fix: "write postgres:// alone: jdbc: and +driver are of other libraries"},
	{Pattern: regexp.MustCompile(`^(\w+=\S* +)*(host|dbname|user)=`),
		Fix: "write postgres://user:password@host:port/database: the store needs a URL"},
	{Pattern: regexp.MustCompile(`^https?://`),
		Fix: "write the kind of the store in place of http: etcd://host:port, " +
			"s3://bucket?endpoint=https://… or k8s://namespace/name?server=https://…"},
	{Pattern: regexp.MustCompile(`^/`), Fix: "write file: before the path of a lease directory"},
	{Pattern: regexp.MustCompile(`^[0-9A-Fa-f]{32}$`),
		Fix: "set the URL of the store here, and this value, a secret, as TRACEFLAKE_SECRET"},
}

// advise adds what an operator can do to the error of a URL that cannot be opened.
func advise(url string, err error) error {
	err = driver.Diagnose(err) // of a file that the URL names
	if lease.Fix(err) != "" {
		return err
	}
	return &lease.Error{Err: err, Fix: cmp.Or(mistakes.Fix(url), mistakes.Find(url, wrong),
		"correct the URL of the store")}
}
