filedesc://x.arc 0.0.0.0 20240501000000 text/plain 64
1 0 ISP
URL IP-address Archive-date Content-type Archive-length

http://a.example/103 192.0.2.1 20240501000000 text/html 87
HTTP/1.1 103 Early Hints

HTTP/1.1 200 OK
Content-Type: text/html

<a href=x>x</a>
http://a.example/none 192.0.2.1 20240501000000 text/html 64
HTTP/1.1 200 OK
Content-Type: text/html
Content-Length: 15


http://a.example/204 192.0.2.1 20240501000000 text/html 52
HTTP/1.1 204 No Content
Content-Type: text/html


http://a.example/robots 192.0.2.1 20240501000000 text/html 95
HTTP/1.1 200 OK
Content-Type: text/html
X-Robots-Tag: none
Refresh: 1;new

<a href=x>x</a>
