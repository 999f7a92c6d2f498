package xtraceid

var ContextHeaders = contextHeaders
