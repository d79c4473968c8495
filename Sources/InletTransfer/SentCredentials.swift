internal import FoundationEssentials
package import InletCore

/// The credentials that went out with a request. Its answer may repeat them, and so may a proxy's.
///
/// They are found by the names of fields and query items: whatever sends a new one needs nothing here.
package struct SentCredentials: Sendable {
    private var headers: HTTPFields = []
    private var url: HTTPURL?
    private var body: [Secret] = []
    private var proxy: ProxyServer?

    /// None.
    package init() {}

    package init(_ request: HTTPRequest, proxy: ProxyServer? = nil) {
        headers = request.headers
        url = request.url
        body = request.secrets
        self.proxy = proxy
    }

    /// All of them. Made when an answer is to be shown: few are.
    var all: [Secret] { body + headers.flatMap(Self.secrets) + querySecrets + proxySecrets }

    private static let names = [
        "authorization", "token", "secret", "password", "signature", "credential", "api-key", "api_key", "cookie",
    ]
    /// Of a query, and nothing else: in addresses that a server has signed (Azure's SAS, plain gateways).
    private static let wholeNames: Set = ["sig", "auth", "jwt", "hmac"]

    private static func isSecret(_ name: String) -> Bool {
        let lower = name.lowercased()
        return names.contains { lower.contains($0) }
    }

    private static func secrets(of field: (name: String, value: String)) -> [Secret] {
        guard isSecret(field.name) else { return [] }
        let words = field.value.split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return [Secret(field.value)] }
        switch words[0].lowercased() {
        case "basic": return [Secret(String(words[1]))] + login(String(words[1]))
        case "aws4-hmac-sha256":
            return words[1].split { ", ".contains($0) }.compactMap { part in
                if part.hasPrefix("Credential=") { return Secret(String(part.dropFirst(11).prefix { $0 != "/" })) }
                return part.hasPrefix("Signature=") ? Secret(String(part.dropFirst(10))) : nil
            }
        default: return [Secret(field.value), Secret(String(words[1]))]
        }
    }

    /// What is in the word of a Basic login (RFC 7617).
    private static func login(_ word: String) -> [Secret] {
        guard let data = Data(base64Encoded: word) else { return [] }
        let text = String(decoding: data, as: UTF8.self)
        return [text, text.firstIndex(of: ":").map { String(text[$0...].dropFirst()) } ?? text].map { Secret($0) }
    }

    private var querySecrets: [Secret] {
        guard let url, let start = url.text.firstIndex(of: "?") else { return [] }
        return url.text[start...].dropFirst().split(separator: "&").flatMap { item -> [Secret] in
            let pair = item.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, let name = pair.first.map({ Percent.decode($0).lowercased() }),
                Self.isSecret(name) || Self.wholeNames.contains(name)
            else { return [] }
            return [Secret(String(pair[1])), Secret(Percent.decode(pair[1]))]
        }
    }

    private var proxySecrets: [Secret] {
        guard let password = proxy?.password?.reveal() else { return [] }
        return [Secret(password), Secret("\(proxy?.user ?? ""):\(password)")]
    }
}
