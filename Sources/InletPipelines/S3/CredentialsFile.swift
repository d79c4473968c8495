internal import InletCore

/// The file of the AWS tools that holds keys by profile ("Configuration and credential file settings", AWS CLI guide).
///
/// `[name]` begins a profile, also `[profile name]`; `key = value` sets one; `#` and `;` begin a line of comment; what is
/// indented belongs to the value above and is left out. The last of several values counts.
struct CredentialsFile: Sendable {
    /// Larger is no credentials file.
    static let sizeLimit = 1 << 20

    private var profiles: [String: [String: String]] = [:]

    init(_ text: String) {
        var profile: String?
        for line in text.split(whereSeparator: \.isNewline) {
            guard let first = line.first, !first.isWhitespace, first != "#", first != ";" else { continue }
            if first == "[" {
                profile = line.firstIndex(of: "]").map { Self.name(line[line.index(after: line.startIndex)..<$0]) }
                if let profile, profiles[profile] == nil { profiles[profile] = [:] }
            } else if let profile, let equals = line.firstIndex(of: "=") {
                let key = Self.trimmed(line[..<equals]).lowercased()
                profiles[profile]?[key] = Self.trimmed(line[line.index(after: equals)...])
            }
        }
    }

    var names: [String] { profiles.keys.sorted() }

    /// The keys of a profile; nil when it is not there or lacks one.
    func credentials(_ profile: String) -> S3Credentials? {
        guard let values = profiles[profile], let access = values["aws_access_key_id"], !access.isEmpty,
            let secret = values["aws_secret_access_key"], !secret.isEmpty
        else { return nil }
        let token = values["aws_session_token"].flatMap { $0.isEmpty ? nil : Secret($0) }
        return S3Credentials(accessKey: Secret(access), secretKey: Secret(secret), sessionToken: token)
    }

    private static func name(_ text: Substring) -> String {
        let words = text.split(whereSeparator: \.isWhitespace)
        return words.count == 2 && words[0] == "profile" ? String(words[1]) : trimmed(text)
    }

    private static func trimmed(_ text: Substring) -> String {
        var rest = text.drop(while: \.isWhitespace)
        while rest.last?.isWhitespace == true { rest.removeLast() }
        return String(rest)
    }
}
