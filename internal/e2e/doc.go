// Package e2e has only tests: those that need modules which the root module does not require, such
// as otelhttp and autoprop.
package e2e
