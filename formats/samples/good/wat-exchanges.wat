WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/p
Content-Type: application/json
Content-Length: 214

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/p"},"Payload-Metadata":{"HTTP-Request-Metadata":{"Request-Message":{"Method":"GET","Path":"/","Version":"HTTP/1.1"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/p
Content-Type: application/json
Content-Length: 255

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/p"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/p
Content-Type: application/json
Content-Length: 215

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/p"},"Payload-Metadata":{"HTTP-Request-Metadata":{"Request-Message":{"Method":"HEAD","Path":"/","Version":"HTTP/1.1"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/p
Content-Type: application/json
Content-Length: 227

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/p"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{},"HTML-Metadata":{"Links":[]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/q
Content-Type: application/json
Content-Length: 215

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/q"},"Payload-Metadata":{"HTTP-Request-Metadata":{"Request-Message":{"Method":"POST","Path":"/","Version":"HTTP/1.1"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/q
Content-Type: application/json
Content-Length: 227

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/q"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"404"},"Headers":{},"HTML-Metadata":{"Links":[]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/q
Content-Type: application/json
Content-Length: 214

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/q"},"Payload-Metadata":{"HTTP-Request-Metadata":{"Request-Message":{"Method":"PUT","Path":"/","Version":"HTTP/1.1"}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/r
Content-Type: application/json
Content-Length: 255

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/r"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/none
Content-Type: application/json
Content-Length: 271

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/none"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"Content-Length":"15"},"HTML-Metadata":{"Links":[]},"Entity-Length":"0"}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/empty
Content-Type: application/json
Content-Length: 271

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/empty"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"Content-Length":"0"},"HTML-Metadata":{"Links":[]},"Entity-Length":"0"}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/206
Content-Type: application/json
Content-Length: 229

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/206"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"206"},"Headers":{},"HTML-Metadata":{"Links":[]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/refresh
Content-Type: application/json
Content-Length: 289

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/refresh"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"refresh":["","0; url=/new"]},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/robots
Content-Type: application/json
Content-Length: 304

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/robots"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"X-Robots-Tag":["googlebot: noindex","none"]},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/other-robot
Content-Type: application/json
Content-Length: 297

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/other-robot"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{"X-Robots-Tag":"googlebot: none"},"HTML-Metadata":{"Links":[{"path":"A@/href","url":"x"}]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/301
Content-Type: application/json
Content-Length: 274

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Target-URI":"http://a.example/301"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"301"},"Headers":{"Location":["","/new"],"Refresh":"0; url=/no"},"HTML-Metadata":{"Links":[]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/copy
Content-Type: application/json
Content-Length: 280

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"revisit","WARC-Target-URI":"http://a.example/copy","WARC-Refers-To-Target-URI":"<http://a.example/p>"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},"Headers":{},"HTML-Metadata":{"Links":[]}}}}}

WARC/1.0
WARC-Type: metadata
WARC-Target-URI: http://a.example/end
Content-Type: application/json
Content-Length: 216

{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"request","WARC-Target-URI":"http://a.example/end"},"Payload-Metadata":{"HTTP-Request-Metadata":{"Request-Message":{"Method":"GET","Path":"/","Version":"HTTP/1.1"}}}}}

