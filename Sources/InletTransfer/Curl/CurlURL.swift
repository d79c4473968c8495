import CCurl

/// The parts of a URL as libcurl itself reads them, so that what the rules check is what is connected to.
struct CurlURL {
    /// Normalised, for the wire; dot segments are kept because presigned URLs are signed as they stand.
    var text: String
    var scheme: String
    /// Lower case; percent-decoded, odd IPv4 spellings made dotted, IPv6 without brackets and zone.
    var host: String
    var port: UInt16
    var isDefaultPort: Bool
    var path: String
    var query: String?

    /// nil when libcurl refuses `text`; user names and passwords are refused.
    init?(parsing text: String) {
        let handle = Handle()
        let flags = UInt32(CURLU_DISALLOW_USER | CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME)
        guard handle.set(text, flags), let whole = handle.part(CURLUPART_URL),
            let scheme = handle.part(CURLUPART_SCHEME), let host = handle.part(CURLUPART_HOST),
            let port = handle.part(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap(UInt16.init)
        else { return nil }
        self.text = whole
        self.scheme = scheme.lowercased()
        self.host = Self.bare(host)
        self.port = port
        isDefaultPort = port == (self.scheme == "https" ? 443 : 80)
        path = handle.part(CURLUPART_PATH) ?? "/"
        query = handle.part(CURLUPART_QUERY)
    }

    /// The bytes of an IPv4 or IPv6 literal; nil when `host` is a name.
    static func addressBytes(_ host: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = inlet_parse_address(host, &bytes)
        return count > 0 ? Array(bytes.prefix(Int(count))) : nil
    }

    private static func bare(_ host: String) -> String {
        var bare = host.lowercased()
        if bare.hasPrefix("["), bare.hasSuffix("]") { bare = String(bare.dropFirst().dropLast()) }
        if bare.contains(":"), let zone = bare.firstIndex(of: "%") { bare = String(bare[..<zone]) }
        return bare
    }

    /// Owner of a `CURLU`.
    private final class Handle {
        private let pointer = curl_url()

        deinit { curl_url_cleanup(pointer) }

        func set(_ text: String, _ flags: UInt32) -> Bool {
            curl_url_set(pointer, CURLUPART_URL, text, flags) == CURLUE_OK
        }

        func part(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
            var value: UnsafeMutablePointer<CChar>?
            guard curl_url_get(pointer, part, &value, flags) == CURLUE_OK, let value else { return nil }
            defer { curl_free(value) }
            return String(cString: value)
        }
    }
}
