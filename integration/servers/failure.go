package servers

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
)

// ClickHouse's error codes that the gateway itself returns.
const (
	codeNotImplemented = 48
	codeNetworkError   = 210
	codeNotEnoughSpace = 243
	codeAuthentication = 516
	codeUnknown        = 1002
)

var codePrefix = regexp.MustCompile(`^Code: (\d+)\.`)

// fail answers as ClickHouse does: status, X-ClickHouse-Exception-Code and the text.
func fail(w http.ResponseWriter, err error) {
	code := codeUnknown
	message := err.Error()
	if m := codePrefix.FindStringSubmatch(message); m != nil {
		code, _ = strconv.Atoi(m[1])
	} else {
		message = "Code: 1002. DB::Exception: " + message + ". (UNKNOWN_EXCEPTION)"
	}
	var refused *refusal
	if errors.As(err, &refused) {
		code = refused.code
		message = "Code: " + strconv.Itoa(code) + ". DB::Exception: " + refused.message + ". (" + refused.name + ")"
	}
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(http.StatusInternalServerError) // clients go by the code
	_, _ = w.Write([]byte(message + "\n"))
}

// refusal is an error of the gateway, in ClickHouse's terms.
type refusal struct {
	code    int
	name    string
	message string
}

func (r *refusal) Error() string { return r.message }

func notImplemented(what string) error {
	return &refusal{codeNotImplemented, "NOT_IMPLEMENTED", "the gateway does not support " + what}
}
