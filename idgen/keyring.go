package idgen

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// InspectKeyring decodes id under each secret of k and returns the first whose
// halves agree, and that secret's number from 0. When none does, the number is
// -1 and the Info is that of the secret which makes IDs.
//
// To verify under every secret of a keyring, give its codecs to [NewVerifier].
func InspectKeyring(k *randflake.Keyring, id trace.TraceID) (info Info, secret int) {
	for i, c := range k.Codecs() {
		if info = Inspect(c, id); info.Agree {
			return info, i
		}
	}
	return Inspect(k.Codec(), id), -1
}
