package identify

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// ErrUnknown is returned for text in which there is no ID.
var ErrUnknown = errors.New("not an ID")

// written is an ID as a line has it.
type written struct {
	role     string // trace, span or parent, if the line says so
	text     string // with leading zeros that were left out, and base64 in hex
	notation string
	id       trace.TraceID // of 64 bits, padded with zeros; zero for texts of their own
	padded   bool          // its 128 bits have fewer than 32 digits without leading zeros
}

// traceID returns the ID, unless the line says that it is that of a span.
func (w written) traceID() (id trace.TraceID) {
	if w.role == roleTrace || w.role == "" {
		id = w.id
	}
	return id
}

// The notations of IDs.
const (
	asHex128  = "hex128"
	asUUID    = "uuid" // also X-Ray's, with other dashes
	asULID    = "ulid"
	asHex64   = "hex64"
	asDecimal = "decimal"
	asText    = "text" // a kind's own
)

const (
	roleTrace  = "trace"
	roleSpan   = "span"
	roleParent = "parent"
)

// find returns the IDs in a line, each once: the line is an ID, or names some, or contains IDs of
// 128 bits, which 64 bits accompany. An ID of zeros means that there is none. The error wraps
// [ErrUnknown].
func find(line string) ([]written, error) {
	if id, ok := bare(line); ok {
		return []written{id}, nil
	}
	f := finder{line: strings.TrimSpace(line)}
	if !mayContain(f.line) {
		return nil, nothing{line: f.line}
	}
	f.rewrite()
	f.whole("", strings.Trim(f.line, "\"'`,.?!;()[]{}<> \t"))
	if f.found == nil {
		f.named()
		f.pair()
	}
	if !slices.ContainsFunc(f.found, func(w written) bool { return w.role != roleSpan }) {
		f.text(f.line)
	}
	if f.found == nil {
		return nil, nothing{f.line, f.cut, f.zeros}
	}
	return f.found, nil
}

// bare reads a line of 32 hex digits, as lists of IDs have them, at once.
func bare(line string) (w written, ok bool) {
	if len(line) != 32 {
		return w, false
	}
	id, err := trace.TraceIDFromHex(line) // upper case is read otherwise
	return written{text: line, notation: asHex128, id: id}, err == nil
}

// finder collects the IDs in a line.
type finder struct {
	line  string
	zeros bool   // there was an ID of zeros
	cut   string // a value of which the line has only the beginning
	found []written
}

func (f *finder) has(text string) bool { return strings.Contains(f.line, text) }

func (f *finder) rewrite() {
	for i, from := range table.rewritten {
		rule := table.Rewritten[i]
		if slices.ContainsFunc(rule[2:], f.has) { // the expression is slower
			f.line = from.ReplaceAllString(f.line, rule[1])
		}
	}
	for range 2 { // an address may be in another's query
		if f.has("%") || f.has(`\`) {
			f.line = table.Codes.ReplaceAllStringFunc(f.line, func(code string) string {
				c, _ := strconv.ParseUint(code[len(code)-2:], 16, 8)
				return string(rune(c))
			})
		}
	}
	if f.has("...") || f.has("…") || f.has("u2026") {
		f.cut = table.Cut.FindString(f.line)
		f.line = table.Cut.ReplaceAllString(f.line, " ")
	}
}

// add adds an ID, unless it is there already or none.
func (f *finder) add(role, text string) bool {
	w, ok := read(role, text)
	if !ok || role != roleTrace && role != "" && is128(w.id) {
		return false // spans have 64 bits
	}
	if w.notation == "" {
		f.zeros = true
		return true
	}
	w.role = role
	if !slices.Contains(f.found, w) {
		f.found = append(f.found, w)
	}
	return true
}

// groups adds the IDs in the groups of a match, which are named by their roles.
func (f *finder) groups(of pattern, match []string) {
	for i, role := range of.SubexpNames() {
		if role != "" && match[i] != "" {
			text := match[i]
			if strings.Contains(match[0], ":") { // Jaeger leaves out leading zeros
				text = padded(text, 16)
			}
			f.add(role, text)
		}
	}
}

// whole adds the IDs in a value that consists of nothing else.
func (f *finder) whole(role, token string) (ok bool) {
	for _, form := range table.Tokens {
		if match := form.FindStringSubmatch(token); match != nil {
			f.groups(form, match)
			return true
		}
	}
	return f.add(role, token)
}

// named adds the IDs in values whose names say that they are IDs.
func (f *finder) named() {
	for rest := f.line; ; {
		at := table.Named.FindStringSubmatchIndex(rest)
		if at == nil {
			return
		}
		role := roleOf(rest[at[2]:at[3]])
		value := strings.TrimRight(rest[at[4]:at[5]], ".:-/")
		if role != "" && (f.whole(role, value) || f.text(value)) {
			rest = rest[at[5]:]
		} else {
			rest = rest[at[4]:] // the value may be a name
		}
	}
}

// pair completes the low halves that Datadog's libraries log, if the line has the high half too.
func (f *finder) pair() {
	if !f.has("_dd.p.tid") {
		return
	}
	match := table.High.FindStringSubmatch(f.line)
	for i, w := range f.found {
		if match != nil && w.role == roleTrace && !is128(w.id) {
			whole, ok := read(roleTrace, match[1]+w.id.String()[16:])
			if ok && !slices.Contains(f.found, whole) {
				f.found[i] = whole
			}
		}
	}
}

// text adds the IDs of 128 bits anywhere in a text, and those of 64 bits if there are some.
func (f *finder) text(text string) bool {
	all := table.Anywhere.FindAllStringSubmatch(text, -1)
	for _, match := range all {
		f.groups(table.Anywhere, match)
	}
	if all != nil {
		for _, digits := range table.Short.FindAllString(text, -1) {
			if !slices.ContainsFunc(f.found, func(w written) bool { return w.text == digits }) {
				f.add(roleSpan, digits)
			}
		}
	}
	return all != nil
}

var digitsRun = regexp.MustCompile(`(?i)\b[0-9a-f]{13,}\b`)

// nothing is the error for a line without an ID. Most of them are never printed.
type nothing struct {
	line, cut string
	zeros     bool
}

func (nothing) Unwrap() error { return ErrUnknown }

func (n nothing) Error() string {
	digits := digitsRun.FindString(n.line)
	switch {
	case n.line == "":
		return fmt.Sprintf("%v: it is empty", ErrUnknown)
	case n.cut != "":
		return fmt.Sprintf("%v: %.60q is cut; a trace ID has 32 hex digits", ErrUnknown,
			strings.TrimLeft(n.cut, " =:\"'([{<"))
	case n.zeros:
		return fmt.Sprintf("%v: %.60q is all zeros, which is not a valid ID", ErrUnknown, n.line)
	case digits != "":
		return fmt.Sprintf("%v: %.60q has %d hex digits; a trace ID has 32, a span ID or a short "+
			"trace ID 16", ErrUnknown, digits, len(digits))
	}
	return fmt.Sprintf("%v: %.60q contains no ID", ErrUnknown, n.line)
}

var joined = strings.NewReplacer("_", "", ".", "", "-", "")

// roleOf returns the role of the ID in a field with this name, or "".
func roleOf(name string) string {
	name = joined.Replace(strings.ToLower(name))
	switch {
	case table.Roles.Trace.MatchString(name):
		return roleTrace
	case table.Roles.Parent.MatchString(name):
		return roleParent
	case table.Roles.Span.MatchString(name):
		return roleSpan
	}
	return ""
}

// padded returns hex digits with the leading zeros that some tools leave out.
func padded(digits string, width int) string {
	return strings.Repeat("0", max(width-len(digits), 0)) + digits
}

// read reads the text of an ID in one of the notations. Its notation is "" if it is all zeros. Only
// an ID with a role may be in base64 or lack leading zeros. Base64 without padding looks like a
// word, so it must have a digit and letters of both cases.
func read(role, s string) (w written, ok bool) {
	if digits, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok && isHex(digits) {
		s = digits
	}
	if isHex(s) || s == "-" {
		if strings.Trim(s, "0-") == "" {
			return w, true
		}
	}
	w = written{role: role, text: s}
	n, digits := len(s), strings.ToLower(s)
	switch {
	case n == 32:
		w.notation = asHex128
	case n == 16:
		w.notation = asHex64
	case table.Dashed.MatchString(s):
		w.notation = asUUID
		digits = strings.ReplaceAll(strings.TrimPrefix(digits, "1-"), "-", "")
	}
	id, err := trace.TraceIDFromHex(padded(digits, 32))
	switch {
	case w.notation != "" && err == nil:
		w.id = id
		return w, true
	case isDecimal(s) && 13 < n && n < 40:
		return w.fromDecimal()
	case role == roleTrace && 17 <= n && n < 32 && isHex(s):
		w, ok = read(role, padded(s, 32))
		w.padded = true
		return w, ok
	case role != "" && 13 <= n && n < 16 && isHex(s):
		return read(role, padded(s, 16))
	case role != "" && (strings.HasSuffix(s, "=") || n == 22 && mixed(s)):
		b, err := base64.RawURLEncoding.Strict().DecodeString(urlAlphabet.Replace(s))
		if err == nil && (len(b) == 16 || len(b) == 8) {
			return read(role, fmt.Sprintf("%x", b))
		}
	case n == ulidDigits:
		w.notation = asULID
		w.id, ok = parseULID(s)
		return w, ok
	}
	if role == "" && slices.ContainsFunc(table.Kinds, func(k *kind) bool {
		return k.Text != nil && k.Text.MatchString(s)
	}) {
		w.notation = asText
		return w, true
	}
	return w, false
}

// fromDecimal reads a number of 64 bits or, as Python and PHP print IDs, of 128 bits.
func (w written) fromDecimal() (written, bool) {
	n, _ := new(big.Int).SetString(w.text, 10)
	switch bits := n.BitLen(); {
	case bits > 128:
		return w, false
	case bits > 64:
		w.text, w.notation, w.padded = fmt.Sprintf("%032x", n), asHex128, bits <= 124
	default:
		w.notation = asDecimal
	}
	n.FillBytes(w.id[:])
	return w, true
}

var urlAlphabet = strings.NewReplacer("+", "-", "/", "_", "=", "")

// mixed reports whether s has a digit, and letters of both cases.
func mixed(s string) bool {
	return s != strings.ToLower(s) && s != strings.ToUpper(s) &&
		strings.ContainsAny(s, "0123456789")
}

func is128(id trace.TraceID) bool { return [8]byte(id[:]) != [8]byte{} }

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

const ulidDigits = 26 // 130 bits; the first two are 0

// parseULID reads the text of a ULID.
func parseULID(s string) (trace.TraceID, bool) {
	const padding = "000000" // to whole bytes
	b, err := crockford.DecodeString(padding + strings.ToUpper(s))
	if err != nil || [4]byte(b) != [4]byte{} {
		return trace.TraceID{}, false
	}
	id := trace.TraceID(b[4:])
	return id, id.IsValid()
}

func isDecimal(s string) bool { return strings.Trim(s, "0123456789") == "" }

// TraceIDsIn returns the trace IDs in a line that [Identifier.Line] reads, each once. The error
// wraps [ErrUnknown].
func TraceIDsIn(line string) (ids []trace.TraceID, err error) {
	found, err := find(line)
	for _, w := range found {
		if id := w.traceID(); id.IsValid() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		err = cmp.Or(err, fmt.Errorf("%w: %.60q contains no trace ID", ErrUnknown, line))
	}
	return ids, err
}
