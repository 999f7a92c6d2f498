//go:build !(amd64 || arm64) || purego

package sparx64

type backend struct {
	name string
	have bool
}

var (
	portable = &backend{name: "portable", have: true}
	backends = []*backend{portable}
	using    = portable
)
