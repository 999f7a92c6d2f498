package servers

import (
	"fmt"
	"net/http"
	"regexp"
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

// fail answers as ClickHouse does: X-ClickHouse-Exception-Code and the text. Clients go by the code,
// not by the status.
func fail(w http.ResponseWriter, err error) {
	if !codePrefix.MatchString(err.Error()) {
		err = refuse(codeUnknown, "UNKNOWN_EXCEPTION", err.Error())
	}
	w.Header().Set("X-ClickHouse-Exception-Code", codePrefix.FindStringSubmatch(err.Error())[1])
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// refuse returns an error of the gateway, in ClickHouse's terms.
func refuse(code int, name, message string) error {
	return fmt.Errorf("Code: %d. DB::Exception: %s. (%s)", code, message, name) //nolint:staticcheck // the text is ClickHouse's
}

func notImplemented(what string) error {
	return refuse(codeNotImplemented, "NOT_IMPLEMENTED", "the gateway does not support "+what)
}
