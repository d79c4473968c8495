import CCurl
import InletCore

/// An absolute http or https URL that has passed `URLRules`.
///
/// `text` may carry a presigned query, which is a credential: only `redacted` may be printed.
package struct HTTPURL: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The whole URL, for sending only.
    package private(set) var text: String
    /// `http` or `https`.
    package let scheme: String
    /// Lower case; an IPv6 literal without brackets.
    package let host: String
    package let port: UInt16
    /// As sent, percent-encoded.
    package private(set) var path: String
    private var query: String?
    /// Scheme, host and port; equal for requests that can share connections.
    let origin: String
    /// The addresses that it may lead to; nil = any, because a person has named it.
    let reach: Set<HostScope>?

    /// Parses `text` and checks it against `rules`.
    ///
    /// - Throws: `.forbiddenURL` for anything but a URL, or for a forbidden place; `.insecureURL` for http where it is
    ///   not allowed.
    package init(_ text: String, rules: URLRules) throws(TransferError) {
        guard text.utf8.count <= 16_384, Self.isPlain(text),
            // curl would take "https:///name" for "https://name".
            let slashes = text.firstRange(of: "://"), !text[slashes.upperBound...].hasPrefix("/"),
            let parts = Self.parts(of: text), !parts.host.isEmpty
        else { throw URLRules.refusal(.forbiddenURL, Self.excerpt(text), "is not a valid URL") }
        // libcurl would map such a host to another one, of which no rule has been asked: "①②⑦.⓪.⓪.①" to 127.0.0.1.
        guard parts.host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }) else {
            let why = "has a host name with non-ASCII letters; write it as xn--…"
            throw URLRules.refusal(.forbiddenURL, Self.excerpt(text), why)
        }
        self.text = parts.text
        scheme = parts.scheme
        host = parts.host
        port = parts.port
        path = parts.path
        query = parts.query
        let bracketed = parts.host.contains(":") ? "[\(parts.host)]" : parts.host
        let isDefaultPort = parts.port == (parts.scheme == "https" ? 443 : 80)
        origin = parts.scheme + "://" + bracketed + (isDefaultPort ? "" : ":\(parts.port)")
        reach = rules.reach
        try rules.check(self)
    }

    /// Scheme, host, port and path; no query, no fragment.
    package var redacted: String { origin + path }

    /// Host and port as in the Host field: no default port, an IPv6 literal in brackets.
    package var authority: String { String(origin.dropFirst(scheme.utf8.count + 3)) }

    /// Whether the host is `localhost` or a loopback address.
    package var isLoopback: Bool { HostScope(host) == .loopback }

    package var description: String { redacted }
    package var debugDescription: String { redacted }
    package var customMirror: Mirror { Mirror(self, children: ["redacted": redacted]) }

    /// The percent-decoded value of the first query item called `name`; empty when it has no `=`.
    package func queryItem(_ name: String) -> String? {
        for item in query?.split(separator: "&") ?? [] {
            let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if Percent.decode(pair[0]) == name { return pair.count == 2 ? Percent.decode(pair[1]) : "" }
        }
        return nil
    }

    /// The URL with `path` appended, with a single slash between them. Every byte but RFC 3986's unreserved ones and
    /// `/` is percent-encoded; the query stays.
    package func appending(path suffix: String) -> HTTPURL {
        var url = self
        let slash = UInt8(ascii: "/")
        let tail = Percent.encode(Substring(suffix.utf8.dropFirst(suffix.utf8.first == slash ? 1 : 0)), keeping: "/")
        var longer = ""
        longer.reserveCapacity(path.utf8.count + 1 + tail.utf8.count)
        longer += path
        if path.utf8.last != slash { longer += "/" }
        longer += tail
        url.path = longer
        url.setText()
        return url
    }

    /// The URL with one more query item, both sides percent-encoded.
    package func appending(queryItem name: String, _ value: String) -> HTTPURL {
        var url = self
        let item = Percent.encode(name[...]) + "=" + Percent.encode(value[...])
        url.query = query.map { $0 + "&" + item } ?? item
        url.setText()
        return url
    }

    /// Joins its parts. Each small file has a URL: one allocation.
    private mutating func setText() {
        text = ""
        text.reserveCapacity(origin.utf8.count + path.utf8.count + (query.map { $0.utf8.count + 1 } ?? 0))
        text += origin
        text += path
        guard let query else { return }
        text += "?"
        text += query
    }

    /// The start of an unusable URL, up to where a secret could begin.
    private static func excerpt(_ text: String) -> String {
        let head = text.prefix { !"?#".contains($0) }
        let authority = head.firstRange(of: "://").map { head[$0.upperBound...] } ?? head
        guard authority.prefix(while: { $0 != "/" }).contains("@") else { return String(head.prefix(200)) }
        return "a URL with a user name in it"
    }
}

/// Percent-encoding of RFC 3986, section 2.1.
package enum Percent {
    /// `text` with every UTF-8 byte but the unreserved ones and those of `kept` as `%HH`.
    package static func encode(_ text: Substring, keeping kept: String = "") -> String {
        func isPlain(_ byte: UInt8) -> Bool { unreserved[Int(byte)] || kept.utf8.contains(byte) }
        // Most texts need no change, and then cost nothing.
        if text.utf8.allSatisfy(isPlain) { return String(text) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 32)
        for byte in text.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += ((byte < 16 ? "%0" : "%") + digits).utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let unreserved: [Bool] = {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        return (UInt8.min...UInt8.max).map { plain.contains($0) }
    }()

    /// `text` with every `%HH` decoded; incomplete ones stay, bytes that are not UTF-8 become U+FFFD.
    package static func decode(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = digit(rest.first), let low = digit(rest.dropFirst().first) {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(UnicodeScalar($0)).hexDigitValue }.map { UInt8($0) }
    }
}

extension HTTPURL {
    /// The parts of a URL as libcurl itself reads them, so that the rules check exactly the place of the connection.
    /// nil when libcurl refuses `text`; user names and passwords are refused.
    ///
    /// The text is normalised for sending; dot segments are kept because presigned URLs are signed with them. The host
    /// is in lower case, percent-decoded, with odd IPv4 spellings made dotted, and IPv6 without brackets and zone.
    static func parts(
        of text: String
    ) -> (text: String, scheme: String, host: String, port: UInt16, path: String, query: String?)? {
        let handle = curl_url()
        defer { curl_url_cleanup(handle) }
        func part(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
            var value: UnsafeMutablePointer<CChar>?
            guard curl_url_get(handle, part, &value, flags) == CURLUE_OK, let value else { return nil }
            defer { curl_free(value) }
            return String(cString: value)
        }
        let flags = UInt32(CURLU_DISALLOW_USER | CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME)
        guard curl_url_set(handle, CURLUPART_URL, text, flags) == CURLUE_OK, let whole = part(CURLUPART_URL),
            let scheme = part(CURLUPART_SCHEME), let host = part(CURLUPART_HOST),
            let port = part(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap(UInt16.init)
        else { return nil }
        let path = part(CURLUPART_PATH) ?? "/"
        return (whole, scheme.lowercased(), bare(host), port, path, part(CURLUPART_QUERY))
    }

    /// The target of a `Location` at the address that sent it (RFC 3986, section 5), byte for byte; the fragment, which
    /// is never sent, is dropped. Text that is not a reference stays unchanged, and is not a URL either.
    package static func resolved(_ reference: String, at base: String) -> String {
        let text = String(reference.prefix { $0 != "#" })
        if text.isEmpty { return base }
        // curl would repair them: escape a space, and take "///name" for "//name".
        guard isPlain(text), !text.hasPrefix("///"), !text.contains(":///") else { return text }
        let handle = curl_url()
        defer { curl_url_cleanup(handle) }
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME)
        var whole: UnsafeMutablePointer<CChar>?
        guard curl_url_set(handle, CURLUPART_URL, base, flags) == CURLUE_OK,
            curl_url_set(handle, CURLUPART_URL, text, flags) == CURLUE_OK,
            curl_url_get(handle, CURLUPART_URL, &whole, 0) == CURLUE_OK, let whole
        else { return text }
        defer { curl_free(whole) }
        return String(cString: whole)
    }

    /// No space, no control byte, and nothing that some programs take for a slash.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\\") }
    }

    private static func bare(_ host: String) -> String {
        var bare = host.lowercased()
        if bare.hasPrefix("["), bare.hasSuffix("]") { bare = String(bare.dropFirst().dropLast()) }
        if bare.contains(":"), let zone = bare.firstIndex(of: "%") { bare = String(bare[..<zone]) }
        return bare
    }
}
