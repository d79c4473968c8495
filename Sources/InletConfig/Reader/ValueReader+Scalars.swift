import InletCore
import SystemPackage

extension ValueReader {
    /// Reads a single value of `kind`; nil after an error. Errors quote the text as written, but never a secret.
    mutating func scalar(_ node: YAMLNode, _ kind: ValueKind, key: String) -> ConfigValue? {
        let key = SecretMask.isHarmless(key) ? DisplayText.escape(key) : "this value"
        guard case .scalar(let text, _) = node.content else {
            report(node.position, "'\(key)' must be a single value, not \(node.kindName)")
            return nil
        }
        if node.isNull {
            report(node.position, "'\(key)' has no value")
            return nil
        }
        switch kind {
        case .string where isVerbatim: return .string(SecretMask.withoutLogin(text))
        case .string: return filled(text, node).map { .string($0) }
        case .secret: return secret(text, node, key: key)
        case .url: return url(text, node, key: key)
        case .path: return path(text, node, key: key)
        default: return plain(text, kind, node, key: key)
        }
    }

    private mutating func plain(_ text: String, _ kind: ValueKind, _ node: YAMLNode, key: String) -> ConfigValue? {
        let result = kind.value(of: text)
        if result == nil { report(node.position, Self.refusal(of: text, kind, key: key)) }
        return result
    }

    /// The error for `text`, with the correct form of a value of `kind`.
    private static func refusal(of text: String, _ kind: ValueKind, key: String) -> String {
        let shown = SecretMask.quoted(text)
        switch kind {
        case .boolean:
            return "\(shown) is neither true nor false"
        case .integer(let range) where Int(text) != nil:
            return "'\(key)' is \(text); it must be from \(range.lowerBound) to \(range.upperBound)"
        case .integer(let range):
            return "\(shown) is not a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .bytes(let word):
            let forms = word.map { "8MiB, 6GB, or \($0)" } ?? "512, 8MiB, 6GB"
            return "\(shown) is not a size; write for example \(forms)"
        case .duration(let offAllowed):
            return "\(shown) is not a duration; write for example 5s, 2m, 24h" + (offAllowed ? ", or off" : "")
        case .rate:
            return "\(shown) \(RateText.fault(of: text))"
        case .time:
            return "\(shown) is not a time of the day; write for example \"08:00\", up to \"24:00\""
        case .choice(let choices):
            let hint = Suggestion.hint(text, in: choices)
            return "'\(key)' must be one of \(choices.joined(separator: ", ")), not \(shown)\(hint)"
        default:
            return "\(shown) is not allowed here"
        }
    }

    private mutating func secret(_ text: String, _ node: YAMLNode, key: String) -> ConfigValue? {
        secrets.append(node)
        guard let secret = filled(text, node) else { return nil }
        if !isVerbatim, secret.isEmpty {
            report(node.position, "'\(key)' is empty")
            return nil
        }
        // A line break would end the header that contains the credential.
        if secret.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) {
            report(node.position, "'\(key)' contains a control character, such as a line break")
            return nil
        }
        return .secret(Secret(secret))
    }

    /// A URL: a login in it is a secret; the rest is shown, because it helps to read the configuration.
    private mutating func url(_ text: String, _ node: YAMLNode, key: String) -> ConfigValue? {
        let marks = text.firstRange(of: "://")
        let rest = text[(marks?.upperBound ?? text.startIndex)...]
        let login = rest.lastIndex(of: "@").map { rest[..<$0] }
        guard !isVerbatim else {
            guard let login else { return .string(text) }
            return .string("\(text[..<login.startIndex])***\(text[login.endIndex...])")
        }
        guard login != nil else { return filled(text, node).map { .secret(Secret($0)) } }
        return secret(text, node, key: key)
    }

    private mutating func path(_ text: String, _ node: YAMLNode, key: String) -> ConfigValue? {
        if isVerbatim, Interpolation.isNeeded(in: text) { return .string(text) }
        guard let filled = filled(text, node) else { return nil }
        guard let path = interpolation.resolve(filled) else {
            report(node.position, Self.refusal(ofPath: filled, key: key))
            return nil
        }
        if !isVerbatim, Self.credentialFiles.contains(key), let trust = FileTrust(of: path) {
            files.append((path, trust, node.position))
        }
        return .string(path.string)
    }

    /// Keys that name files with credentials.
    private static let credentialFiles: Set = [
        "refresh_token_file", "credentials_file", "url_file", "join_file", "admin_url_file",
    ]

    private static func refusal(ofPath text: String, key: String) -> String {
        if text.isEmpty { return "'\(key)' is empty" }
        let isLong = text.utf8.count > Interpolation.longestPath
        return isLong
            ? "'\(key)' is longer than \(Interpolation.longestPath) bytes, the longest possible path"
            : "'~' needs HOME to be set; write the absolute path"
    }

    /// The text with `${…}` filled in; nil after an error at the `${`.
    private mutating func filled(_ text: String, _ node: YAMLNode) -> String? {
        if isVerbatim { return text }
        do {
            let result = try interpolation.fill(text)
            filledIn.formUnion(result.parts.map { Secret($0) })
            files += result.files.map { ($0.path, $0.trust, node.position) }
            if !result.text.utf8.contains(0) { return result.text }
            report(node.position, "text cannot contain a NUL character")
        } catch {
            report(source.position(of: node, offset: error.offset), error.message)
        }
        return nil
    }
}
