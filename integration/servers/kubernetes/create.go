package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
)

// Create creates the objects of a YAML stream, in its order: namespaces, and objects in them whose
// path is their kind with an "s". The server refuses unknown and duplicate fields.
func (s *Server) Create(ctx context.Context, stream string) error {
	objects, err := kio.FromBytes([]byte(stream))
	if err != nil {
		return err
	}
	for _, o := range objects {
		path := "/apis/" + o.GetApiVersion()
		if o.GetApiVersion() == "v1" {
			path = "/api/v1"
		}
		if namespace := o.GetNamespace(); namespace != "" {
			path += "/namespaces/" + namespace
		}
		path += "/" + strings.ToLower(o.GetKind()) + "s?fieldValidation=Strict"
		text, err := o.String()
		if err == nil {
			_, err = s.Do(ctx, http.MethodPost, path, "application/yaml", []byte(text))
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
