package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

//go:embed style.css
var style string

// parts are templates of all pages: table, figures, and text with what was spoken of it.
//
//go:embed parts.html
var parts string

// Template returns a template for the body of a page, with the parts that all pages have.
func Template(name, source string) (*template.Template, error) {
	t, err := template.New("parts").Funcs(functions).Parse(parts)
	if err != nil {
		return nil, err
	}
	return t.New(name).Parse(source)
}

// policy allows a page its own style and what is in the page, and nothing else: no script, no request, no form.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
}()

var frame = template.Must(template.New("document").Funcs(functions).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="xtts-host">
<title>{{text .Title}}</title>
{{.Style}}
</head>
<body>
{{.Body}}
</body>
</html>
`))

// Document is a whole page. The body is what a template of this program has made.
func Document(title string, body template.HTML) ([]byte, error) {
	var b bytes.Buffer
	err := frame.Execute(&b, map[string]any{
		"Policy": policy, "Title": title, "Style": template.HTML("<style>" + style + "</style>"), "Body": body,
	})
	return b.Bytes(), err
}
