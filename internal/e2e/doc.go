// Package e2e has tests only: those that need modules which the root module does not
// require, such as otelhttp and autoprop.
package e2e
