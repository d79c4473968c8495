internal import InletCore
internal import InletTransfer

/// How a service speaks when it refuses: what is said otherwise comes from something that stands before it, or in its place.
enum AnswerForm: Sendable {
    /// An object of JSON.
    case json
    /// JSON, or plain words; an answer without any is its framework's.
    case words
    /// The XML of an S3 store.
    case xml

    func isOwn(_ response: HTTPResponse) -> Bool {
        if response.isHostsOwn || response.isPage { return false }
        switch self {
        case .json: return response.json != nil
        case .words: return true
        // What cannot be read is not in the store's form, which is the answer; below the same of JSON.
        case .xml: return (try? XMLReader.read(response.body))?.name == "Error"
        }
    }

    /// What an answer with this status says, where the service has no words of its own for it.
    func heard(_ response: HTTPResponse, secretsMatter: Bool = false) -> Heard {
        let isOwn = isOwn(response)
        if secretsMatter, isOwn, response.status == 401 || response.status == 403 {
            return Heard(response.status, .credentials)
        }
        return Heard(response.status, isOwn: isOwn)
    }
}

extension HTTPResponse {
    /// Whether it is, or calls itself, a web page.
    var isPage: Bool {
        if header("Content-Type")?.lowercased().contains("html") ?? false { return true }
        let head = String(decoding: body.prefix(200), as: UTF8.self).drop { $0.isWhitespace }.lowercased()
        return head.hasPrefix("<!doctype html") || head.hasPrefix("<html") || head.hasPrefix("<head")
    }

    /// Whether a platform or a router has answered for the service behind it: Railway while there is none, Cloudflare in its own
    /// JSON, Traefik and Envoy in plain words.
    var isHostsOwn: Bool {
        if header("X-Railway-Fallback") != nil { return true }
        let head = String(decoding: body.prefix(40), as: UTF8.self)
        if Self.routersWords.contains(where: head.hasPrefix) { return true }
        return header("cf-ray") != nil && json?["cloudflare_error"]?.boolean == true
    }

    private static let routersWords = ["404 page not found", "no healthy upstream", "upstream connect error"]

    /// The members of its object.
    fileprivate var json: JSONObject? {
        guard body.count <= 1 << 20 else { return nil }
        return (try? JSONValue(parsing: body))?.object
    }
}
