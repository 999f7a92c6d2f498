package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutant is one change. Its name has no line number, so that it stays the same
// when other lines change.
type mutant struct {
	name string
	line int
}

// edit replaces n bytes at offset with text.
type edit struct {
	offset, n int
	text      string
	closes    bool // belongs to the node that ends here, not to one that begins here
}

// rewriter writes all mutants of a file into its text.
type rewriter struct {
	fset   *token.FileSet
	info   *types.Info
	pkg    *types.Package
	file   *ast.File
	source []byte
	short  string // path of the file for names

	strings bool // empty constant text too

	function string
	seen     map[string]int
	skip     map[ast.Expr]bool // already negated as a condition
	first    int               // the number of the first mutant
	mutants  []mutant
	edits    []edit
}

// swaps maps operators to the functions in support.go that replace them.
var swaps = map[token.Token]string{
	token.ADD: "Add", token.SUB: "Sub", token.MUL: "Mul", token.QUO: "Quo", token.REM: "Rem",
	token.AND: "And", token.OR: "Or", token.XOR: "Xor", token.AND_NOT: "AndNot",
	token.SHL: "Shl", token.SHR: "Shr",
	token.LSS: "Lss", token.LEQ: "Leq", token.GTR: "Gtr", token.GEQ: "Geq",
}

// opposite is for statements such as x += y.
var opposite = map[token.Token]string{
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
	token.AND_ASSIGN: "|=", token.OR_ASSIGN: "&=", token.XOR_ASSIGN: "&=", token.SHL_ASSIGN: ">>=",
	token.SHR_ASSIGN: "<<=",
}

func (r *rewriter) rewrite() string {
	for _, d := range r.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			r.function = d.Name.Name
			if d.Recv != nil {
				r.function = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + r.function
			}
			r.early(d)
			r.walk(d.Body)
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				r.function = "var"
				r.walk(d)
			}
		}
	}
	return r.text()
}

// text applies the edits. At one offset, text that ends a node precedes text that begins one, ends
// of inner nodes precede ends of outer ones, and beginnings of outer nodes precede beginnings of
// inner ones. The edits were made from the outside to the inside.
func (r *rewriter) text() string {
	order := make([]int, len(r.edits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.edits[a], r.edits[b]
		switch {
		case x.offset != y.offset:
			return x.offset - y.offset
		case x.closes != y.closes:
			if x.closes {
				return -1
			}
			return 1
		case x.closes:
			return b - a
		}
		return a - b
	})
	var b strings.Builder
	at := 0
	for _, i := range order {
		e := r.edits[i]
		b.Write(r.source[at:e.offset])
		b.WriteString(e.text)
		at = e.offset + e.n
	}
	b.Write(r.source[at:])
	return b.String()
}

// add notes a mutant and returns its number.
func (r *rewriter) add(at ast.Node, change string) int {
	name := fmt.Sprintf("%s %s: %s", r.short, r.function, change)
	r.seen[name]++
	if n := r.seen[name]; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	r.mutants = append(r.mutants, mutant{name, r.fset.Position(at.Pos()).Line})
	return r.first + len(r.mutants) - 1
}

func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }

// around inserts text before and after a node.
func (r *rewriter) around(n ast.Node, before, after string) {
	r.edits = append(r.edits,
		edit{offset: r.offset(n.Pos()), text: before},
		edit{offset: r.offset(n.End()), text: after, closes: true})
}

// code returns a node's source as one line.
func (r *rewriter) code(n ast.Node) string {
	s := strings.Join(strings.Fields(string(r.source[r.offset(n.Pos()):r.offset(n.End())])), " ")
	if len(s) > 80 {
		s = s[:60] + "…" + s[len(s)-12:]
	}
	return s
}

// early inserts a return of zero values at the beginning of a function.
func (r *rewriter) early(d *ast.FuncDecl) {
	if len(d.Body.List) == 0 {
		return
	}
	var zeros []string
	if d.Type.Results != nil {
		for _, f := range d.Type.Results.List {
			for range max(len(f.Names), 1) {
				zeros = append(zeros, "*new("+string(r.source[r.offset(f.Type.Pos()):r.offset(f.Type.End())])+")")
			}
		}
	}
	n := r.add(d, "returns at once")
	r.edits = append(r.edits, edit{offset: r.offset(d.Body.Lbrace) + 1,
		text: fmt.Sprintf(" if mutant(%d) { return %s }; ", n, strings.Join(zeros, ", "))})
}

func (r *rewriter) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			r.drops(n.List)
		case *ast.CaseClause:
			r.drops(n.Body)
		case *ast.CommClause:
			r.drops(n.Body)
		case *ast.IfStmt:
			r.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				r.skip[n.Cond] = true
				no := r.add(n.Cond, fmt.Sprintf("`for %s` → false", r.code(n.Cond)))
				r.around(n.Cond, "(", fmt.Sprintf(") && !mutant(%d)", no))
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						r.condition(e)
					}
				}
			}
		case *ast.ReturnStmt:
			r.results(n)
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.CallExpr:
			return !r.isText(n)
		case *ast.CompositeLit:
			r.literal(n)
			return false
		case *ast.ArrayType:
			return false // its length is a constant
		case ast.Expr:
			if r.constant(n) {
				return false
			}
			if b, ok := n.(*ast.BinaryExpr); ok {
				r.binary(b)
			}
		}
		return true
	})
}

// literal walks the values of a composite literal but not its keys, which may have to be
// constants.
func (r *rewriter) literal(l *ast.CompositeLit) {
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			e = kv.Value
		}
		r.walk(e)
	}
}

// results does not change what is returned beside an error: callers may ignore it.
func (r *rewriter) results(s *ast.ReturnStmt) {
	if len(s.Results) < 2 || r.code(s.Results[len(s.Results)-1]) == "nil" {
		return
	}
	if r.info.TypeOf(s.Results[len(s.Results)-1]).String() != "error" {
		return
	}
	for _, e := range s.Results {
		r.skip[e] = true
	}
}

// isText reports whether a call only makes the text of an error, or panics.
func (r *rewriter) isText(c *ast.CallExpr) bool {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		p, ok := f.X.(*ast.Ident)
		return ok && (p.Name == "errors" && f.Sel.Name == "New" || p.Name == "fmt" && f.Sel.Name == "Errorf")
	}
	return false
}

// drops makes, for each statement, a mutant without it.
func (r *rewriter) drops(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok && r.isText(c) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || r.blank(s) {
				continue
			}
			if op, ok := opposite[s.Tok]; ok && r.number(s.Lhs[0]) {
				r.instead(s, fmt.Sprintf("%s %s %s", r.full(s.Lhs[0]), op, r.full(s.Rhs[0])))
			}
		case *ast.IncDecStmt:
			op := map[token.Token]string{token.INC: "--", token.DEC: "++"}[s.Tok]
			r.instead(s, r.full(s.X)+op)
		case *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt:
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE && s.Tok != token.BREAK {
				continue
			}
		default:
			continue
		}
		n := r.add(s, fmt.Sprintf("without `%s`", r.code(s)))
		r.around(s, fmt.Sprintf("if !mutant(%d) { ", n), " }")
	}
}

func (r *rewriter) instead(s ast.Stmt, other string) {
	n := r.add(s, fmt.Sprintf("`%s` → `%s`", r.code(s), other))
	r.around(s, fmt.Sprintf("if mutant(%d) { %s } else { ", n, other), " }")
}

func (r *rewriter) full(n ast.Node) string {
	return string(r.source[r.offset(n.Pos()):r.offset(n.End())])
}

func (r *rewriter) blank(s *ast.AssignStmt) bool {
	return !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool {
		i, ok := e.(*ast.Ident)
		return !ok || i.Name != "_"
	})
}

// condition makes a mutant in which the condition is false, and one in which it is true.
func (r *rewriter) condition(e ast.Expr) {
	if tv := r.info.Types[e]; tv.Value != nil {
		return
	}
	r.skip[e] = true
	no := r.add(e, fmt.Sprintf("`if %s` → false", r.code(e)))
	yes := r.add(e, fmt.Sprintf("`if %s` → true", r.code(e)))
	r.around(e, "((", fmt.Sprintf(") && !mutant(%d) || mutant(%d))", no, yes))
}

// binary swaps an operator, or drops one side of && and ||.
func (r *rewriter) binary(b *ast.BinaryExpr) {
	switch b.Op {
	case token.LAND:
		for _, side := range []ast.Expr{b.X, b.Y} {
			r.skip[side] = true
			n := r.add(side, fmt.Sprintf("`%s` without `%s`", r.code(b), r.code(side)))
			r.around(side, fmt.Sprintf("(mutant(%d) || ", n), ")")
		}
		return
	case token.LOR:
		for _, side := range []ast.Expr{b.X, b.Y} {
			r.skip[side] = true
			n := r.add(side, fmt.Sprintf("`%s` without `%s`", r.code(b), r.code(side)))
			r.around(side, fmt.Sprintf("(!mutant(%d) && (", n), "))")
		}
		return
	case token.EQL, token.NEQ:
		if r.skip[b] {
			return
		}
		n := r.add(b, fmt.Sprintf("not `%s`", r.code(b)))
		r.around(b, "((", fmt.Sprintf(") != mutant(%d))", n))
		return
	}
	name, ok := swaps[b.Op]
	if !ok || !r.number(b.X) || !r.number(b.Y) {
		return
	}
	of, ok := r.typeName(b.X)
	if !ok {
		return
	}
	if b.Op == token.SHL || b.Op == token.SHR {
		count, ok := r.typeName(b.Y)
		if !ok {
			return
		}
		of += ", " + count
	} else if other := r.info.TypeOf(b.Y); !types.Identical(other, r.info.TypeOf(b.X)) {
		return
	}
	n := r.add(b, fmt.Sprintf("other operator: `%s`", r.code(b)))
	r.around(b, fmt.Sprintf("mutant%s[%s](%d, ", name, of, n), ")")
	r.edits = append(r.edits, edit{offset: r.offset(b.OpPos), n: len(b.Op.String()), text: ","})
}

func (r *rewriter) number(e ast.Expr) bool {
	b, ok := r.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0 && b.Info()&types.IsUntyped == 0
}

// typeName returns the file's name for the type of e.
func (r *rewriter) typeName(e ast.Expr) (string, bool) {
	ok := true
	s := types.TypeString(r.info.TypeOf(e), func(p *types.Package) string {
		if p == r.pkg {
			return ""
		}
		for _, i := range r.file.Imports {
			if strings.Trim(i.Path.Value, `"`) == p.Path() {
				if i.Name != nil {
					return i.Name.Name
				}
				return p.Name()
			}
		}
		ok = false
		return ""
	})
	return s, ok
}

// constant changes the value of a constant, and reports whether e is one.
func (r *rewriter) constant(e ast.Expr) bool {
	tv, ok := r.info.Types[e]
	if !ok || tv.Value == nil {
		return false
	}
	if r.skip[e] {
		return true
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsUntyped != 0 {
		return true
	}
	name, ok := r.typeName(e)
	switch {
	case !ok:
	case b.Info()&types.IsInteger != 0 && tv.Type.String() == "time.Duration":
		if constant.Sign(tv.Value) != 0 {
			n := r.add(e, fmt.Sprintf("twice `%s`", r.code(e)))
			half := r.add(e, fmt.Sprintf("half of `%s`", r.code(e)))
			r.around(e, fmt.Sprintf("mutantTwice[%s](%d, %d, ", name, n, half), ")")
		}
	case b.Info()&types.IsInteger != 0:
		more := r.add(e, fmt.Sprintf("`%s` + 1", r.code(e)))
		less := r.add(e, fmt.Sprintf("`%s` - 1", r.code(e)))
		r.around(e, fmt.Sprintf("mutantInt[%s](%d, %d, ", name, more, less), ")")
	case b.Kind() == types.Bool:
		n := r.add(e, fmt.Sprintf("not `%s`", r.code(e)))
		r.around(e, "(", fmt.Sprintf(" != mutant(%d))", n))
	case r.strings && b.Kind() == types.String && constant.StringVal(tv.Value) != "":
		n := r.add(e, fmt.Sprintf("no %s", r.code(e)))
		r.around(e, fmt.Sprintf("mutantText[%s](%d, ", name, n), ")")
	}
	return true
}
