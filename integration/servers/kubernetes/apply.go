package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Apply creates or changes the objects of a YAML stream, in its order. The server
// refuses fields that it does not know, and fields that are there twice.
func (s *Server) Apply(ctx context.Context, stream string) error {
	decoder := yaml.NewDecoder(strings.NewReader(stream))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var o struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name, Namespace string }
		}
		if err := doc.Decode(&o); err != nil {
			return err
		}
		if o.Kind == "" {
			continue // only comments
		}
		path, err := s.resource(ctx, o.APIVersion, o.Kind, o.Metadata.Namespace)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		encoder := yaml.NewEncoder(&text)
		if err := errors.Join(encoder.Encode(&doc), encoder.Close()); err != nil {
			return err
		}
		_, err = s.Do(ctx, http.MethodPatch, path+"/"+url.PathEscape(o.Metadata.Name)+
			"?fieldManager=test&force=true&fieldValidation=Strict", "application/apply-patch+yaml", text.Bytes())
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
	}
}

// resource returns the path of the objects of a kind.
func (s *Server) resource(ctx context.Context, version, kind, namespace string) (string, error) {
	root := "/apis/" + version
	if !strings.Contains(version, "/") {
		root = "/api/" + version
	}
	data, err := s.Do(ctx, http.MethodGet, root, "", nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", version, err)
	}
	var list struct {
		Resources []struct {
			Name, Kind string
			Namespaced bool
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return "", err
	}
	for _, r := range list.Resources {
		switch {
		case r.Kind != kind || strings.Contains(r.Name, "/"):
		case !r.Namespaced:
			return root + "/" + r.Name, nil
		case namespace == "":
			return root + "/namespaces/default/" + r.Name, nil
		default:
			return root + "/namespaces/" + url.PathEscape(namespace) + "/" + r.Name, nil
		}
	}
	return "", fmt.Errorf("the server has no kind %s in %s", kind, version)
}
