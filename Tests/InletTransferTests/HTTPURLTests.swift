import InletCore
import InletTransfer
import Testing

struct HTTPURLTests {
    private func code(_ text: String, _ rules: URLRules) -> ErrorCode? {
        do throws(TransferError) {
            _ = try HTTPURL(text, rules: rules)
            return nil
        } catch { return error.code }
    }

    @Test(
        arguments: [
            ("https://storage.example/a", nil),
            ("https://192.168.1.5/a", nil),
            ("http://127.0.0.1:8080/", nil),
            ("http://127.9.9.9/", nil),
            ("http://localhost:8080/", nil),
            ("http://a.localhost/", nil),
            ("http://[::1]:9000/", nil),
            ("http://[::ffff:127.0.0.1]/", nil),
            ("http://storage.example/a", .insecureURL),
            ("http://192.168.1.5/", .insecureURL),
            ("http://localhost.example/", .insecureURL),
            ("http://127.0.0.1.example/", .insecureURL),
            ("ftp://storage.example/", .forbiddenURL),
            ("file:///etc/passwd", .forbiddenURL),
            ("gopher://x/", .forbiddenURL),
            ("https://user:pw@storage.example/", .forbiddenURL),
            ("https://user@storage.example/", .forbiddenURL),
            ("storage.example/a", .forbiddenURL),
            ("//storage.example/a", .forbiddenURL),
            ("https:///path", .forbiddenURL),
            ("https://", .forbiddenURL),
            ("", .forbiddenURL),
            ("https://a b/", .forbiddenURL),
            ("https://a/b c", .forbiddenURL),
            ("https://a/b\r\nX: y", .forbiddenURL),
            ("https://a/\u{0}", .forbiddenURL),
            ("https://a\\@b/", .forbiddenURL),
            ("https://a:99999/", .forbiddenURL),
        ] as [(String, ErrorCode?)])
    func `configured URLs are held to scheme, host and shape`(text: String, expected: ErrorCode?) {
        #expect(code(text, .configured(allowHTTP: false)) == expected)
    }

    /// libcurl maps all but the last two to a loopback address or name, some of them only after decoding.
    @Test(arguments: [
        "①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "ⓛocalhost", "localhost\u{3002}", "%e2%91%a0%e2%91%a1%e2%91%a6.0.0.1",
        "127.0.0%E3%80%821", "bücher.example", "b%C3%BCcher.example",
    ]) func `a host with other letters than those of ASCII is refused, as xn-- it is taken`(host: String) throws {
        let api = try HTTPURL("https://api.example/", rules: .configured(allowHTTP: false))
        for rules in [URLRules.configured(allowHTTP: true), .sentByServer(at: api, allowHTTP: true)] {
            let error = #expect(throws: TransferError.self) { try HTTPURL("https://\(host)/p", rules: rules) }
            #expect(error?.code == .forbiddenURL && error?.reason.contains("xn--") == true)
        }
        #expect(code("https://xn--bcher-kva.example/p", .sentByServer(at: api, allowHTTP: false)) == nil)
    }

    @Test func `allow_http lets any host be reached without TLS`() {
        #expect(code("http://storage.example/", .configured(allowHTTP: true)) == nil)
    }

    @Test(
        arguments: [
            ("https://api.example/", "https://cdn.example/p", nil),
            ("https://api.example/", "http://cdn.example/p", .insecureURL),
            ("https://api.example/", "http://127.0.0.1/p", .insecureURL),
            ("https://api.example/", "https://127.0.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://2130706433/p", .forbiddenURL),
            ("https://api.example/", "https://0x7f.1/p", .forbiddenURL),
            ("https://api.example/", "https://0177.0.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://%31%32%37.0.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://0.0.0.0/p", .forbiddenURL),
            ("https://api.example/", "https://localhost/p", .forbiddenURL),
            ("https://api.example/", "https://LOCALHOST./p", .forbiddenURL),
            ("https://api.example/", "https://127.0.0.1./p", .forbiddenURL),
            ("https://api.example/", "https://10.1.2.3/p", .forbiddenURL),
            ("https://api.example/", "https://172.31.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://172.32.0.1/p", nil),
            ("https://api.example/", "https://192.168.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://100.64.0.1/p", .forbiddenURL),
            ("https://api.example/", "https://169.254.169.254/latest", .forbiddenURL),
            ("https://api.example/", "https://[::1]/p", .forbiddenURL),
            ("https://api.example/", "https://[::]/p", .forbiddenURL),
            ("https://api.example/", "https://[::ffff:10.0.0.1]/p", .forbiddenURL),
            ("https://api.example/", "https://[64:ff9b::7f00:1]/p", .forbiddenURL),
            ("https://api.example/", "https://[fd00::1]/p", .forbiddenURL),
            ("https://api.example/", "https://[fe80::1]/p", .forbiddenURL),
            ("https://api.example/", "https://[2606:4700::1111]/p", nil),
            ("https://api.example/", "https://192.0.0.10/p", .forbiddenURL),
            ("https://api.example/", "https://168.63.129.16/p", .forbiddenURL),
            ("https://api.example/", "https://[::ffff:0:10.0.0.1]/p", .forbiddenURL),
            ("https://api.example/", "https://[64:ff9b:1::808:808]/p", .forbiddenURL),
            ("https://api.example/", "https://[2001:0:808:808::1]/p", .forbiddenURL),
            ("https://api.example/", "https://cdn.example:25/p", .forbiddenURL),
            ("https://api.example/", "https://cdn.example:6379/p", .forbiddenURL),
            ("https://api.example/", "https://cdn.example:11211/p", .forbiddenURL),
            ("https://api.example/", "https://cdn.example:8443/p", nil),
            ("https://api.example:6666/", "https://api.example:6666/p", nil),
            ("https://api.example:6666/", "https://api.example:6667/p", .forbiddenURL),
            ("https://8.8.8.8/", "https://9.9.9.9/p", nil),
            ("https://10.0.0.5/", "https://10.0.0.6/p", nil),
            ("https://10.0.0.5/", "https://127.0.0.1/p", .forbiddenURL),
            ("https://10.0.0.5/", "https://169.254.169.254/p", .forbiddenURL),
            ("https://127.0.0.1/", "https://169.254.169.254/p", .forbiddenURL),
            ("https://127.0.0.1/", "https://168.63.129.16/p", .forbiddenURL),
            ("https://127.0.0.1/", "https://10.0.0.6/p", nil),
            ("https://169.254.1.1/", "https://169.254.1.2/p", nil),
            ("https://169.254.1.1/", "https://127.0.0.1/p", .forbiddenURL),
            ("https://169.254.1.1/", "https://169.254.169.254/p", .forbiddenURL),
            ("https://169.254.169.254/", "https://169.254.169.254/p", nil),
            ("https://169.254.169.254/", "https://169.254.1.1/p", .forbiddenURL),
            ("https://169.254.1.1/", "https://[fd00:ec2::254]/p", .forbiddenURL),
            ("http://127.0.0.1:1/", "http://127.0.0.1:2/p", nil),
            ("http://127.0.0.1:1/", "http://[::1]:2/p", nil),
            ("http://127.0.0.1:1/", "http://cdn.example/p", .insecureURL),
        ] as [(String, String, ErrorCode?)])
    func `URLs sent by a server may not lead closer to us`(api: String, text: String, expected: ErrorCode?) throws {
        let api = try HTTPURL(api, rules: .configured(allowHTTP: false))
        #expect(code(text, .sentByServer(at: api, allowHTTP: false)) == expected)
    }

    @Test func `nothing that prints shows a query`() throws {
        let text = "https://Storage.Example:8443/b/k%20y?X-Amz-Signature=canary&X-Amz-Expires=900#canary"
        let url = try HTTPURL(text, rules: .configured(allowHTTP: false))
        #expect(url.redacted == "https://storage.example:8443/b/k%20y")
        var dumped = ""
        dump(url, to: &dumped)
        #expect(!"\(url) \(String(reflecting: url)) \(dumped)".contains("canary"))
        #expect(url.text.contains("X-Amz-Signature=canary"))
        for bad in ["ftp://h/p?s=canary", "https://u:canary@h/", "https://h/ ?canary", "u:canary@h"] {
            let error = #expect(throws: TransferError.self) { try HTTPURL(bad, rules: .configured(allowHTTP: false)) }
            #expect(error?.reason.contains("canary") == false)
        }
    }

    @Test func `query items are found and decoded`() throws {
        let url = try HTTPURL(
            "https://h/p?a=1&X-Amz-Expires=900&n%61me=a%2Fb%zz&flag&a=2", rules: .configured(allowHTTP: false))
        #expect(url.queryItem("X-Amz-Expires") == "900")
        #expect(url.queryItem("name") == "a/b%zz")
        #expect(url.queryItem("a") == "1")
        #expect(url.queryItem("flag") == "")
        #expect(url.queryItem("none") == nil)
    }

    @Test(arguments: [
        ("https://h", "a/b", "https://h/a/b"),
        ("https://h/v1/", "/a b?#%ü+~.txt", "https://h/v1/a%20b%3F%23%25%C3%BC%2B~.txt"),
        ("https://h:444/v1", "x", "https://h:444/v1/x"),
        ("https://h/v1", "//a//b/", "https://h/v1//a//b/"),
        ("https://h/v1/", "/\u{338}a", "https://h/v1/%CC%B8a"),
        ("https://[2001:db8::1]:444/v1?q=1", "x", "https://[2001:db8::1]:444/v1/x?q=1"),
    ]) func `paths are appended with what needs it encoded`(base: String, suffix: String, expected: String) throws {
        let url = try HTTPURL(base, rules: .configured(allowHTTP: false)).appending(path: suffix)
        #expect(url.text == expected)
        #expect(try HTTPURL(url.text, rules: .configured(allowHTTP: false)).text == expected)
    }

    @Test func `query items are appended with everything encoded`() throws {
        let url = try HTTPURL("https://h/p", rules: .configured(allowHTTP: false))
            .appending(queryItem: "k", "a&b=c/d").appending(queryItem: "n", "")
        #expect(url.text == "https://h/p?k=a%26b%3Dc%2Fd&n=")
        #expect(url.queryItem("k") == "a&b=c/d")
    }

    @Test func `a presigned URL goes out as it came`() throws {
        let text = "https://h/b/a%2Fb/../c//d?X-Amz-Credential=k%2F20260101%2Fauto&empty="
        #expect(try HTTPURL(text, rules: .configured(allowHTTP: false)).text == text)
    }
}
