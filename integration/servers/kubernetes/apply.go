package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Apply creates or changes the objects of a YAML stream, in its order: namespaces, and objects in
// them whose path is their kind with an "s". The server refuses unknown and duplicate fields.
func (s *Server) Apply(ctx context.Context, stream string) error {
	for text := range strings.SplitSeq(stream, "\n---\n") {
		var o struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
		if o.Kind == "" {
			continue // only comments
		}
		path := "/apis/" + o.APIVersion
		if !strings.Contains(o.APIVersion, "/") {
			path = "/api/" + o.APIVersion
		}
		if o.Kind != "Namespace" {
			path += "/namespaces/" + url.PathEscape(cmp.Or(o.Metadata.Namespace, "default"))
		}
		path += "/" + strings.ToLower(o.Kind) + "s/" + url.PathEscape(o.Metadata.Name)
		_, err := s.Do(ctx, http.MethodPatch,
			path+"?fieldManager=test&force=true&fieldValidation=Strict",
			"application/apply-patch+yaml", []byte(text))
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
	}
	return nil
}
