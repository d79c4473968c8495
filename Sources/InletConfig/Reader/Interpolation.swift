import InletCore
import SystemPackage

/// Fills in `${env:NAME}` and `${file:PATH}`; `$${` stands for a literal `${`.
///
/// Neither interpolates the inserted text again, nor quotes it in an error.
struct Interpolation {
    /// The largest file that `${file:}` inserts.
    static let maximumFileBytes = 64 << 10

    /// Linux's PATH_MAX without the terminating NUL.
    static let longestPath = 4095

    let environment: [String: String]
    /// The configuration file's folder, where relative paths start; absolute.
    let folder: FilePath
    /// nil when HOME is not set.
    let home: FilePath?

    /// The resulting text, the inserted parts, and the files they came from.
    typealias Filled = (text: String, parts: [String], files: [(path: FilePath, trust: FileTrust)])

    func fill(_ text: String) throws(PatternError) -> Filled {
        guard Self.isNeeded(in: text) else { return (text, [], []) }
        var filled: Filled = ("", [], [])
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            filled.text += rest[..<dollar]
            rest = rest[dollar...]
            if rest.hasPrefix("$${") {
                filled.text += "${"
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${") {
                let offset = text.utf8.distance(from: text.startIndex, to: dollar)
                guard let close = rest.firstIndex(of: "}") else {
                    throw PatternError(offset: offset, message: "close '${' with '}', or write $${ for a literal ${")
                }
                let (part, file) = try value(of: rest[rest.index(dollar, offsetBy: 2)..<close], at: offset)
                filled.parts.append(part)
                filled.text += part
                if let file { filled.files.append(file) }
                rest = rest[rest.index(after: close)...]
            } else {
                filled.text += "$"
                rest = rest.dropFirst()
            }
        }
        filled.text += rest
        return filled
    }

    /// Whether `fill` would change `text` or report an error.
    static func isNeeded(in text: String) -> Bool { text.contains("${") }

    private func value(of reference: Substring, at offset: Int) throws(PatternError) -> (
        String, (path: FilePath, trust: FileTrust)?
    ) {
        if reference.hasPrefix("env:") {
            let name = String(reference.dropFirst(4))
            if let value = environment[name] { return (value, nil) }
            let shown = DisplayText.escape(name)
            throw PatternError(offset: offset, message: "the environment variable '\(shown)' is not set")
        }
        if reference.hasPrefix("file:") { return try content(of: String(reference.dropFirst(5)), at: offset) }
        throw PatternError(
            offset: offset, message: "write ${env:NAME} or ${file:PATH}, or $${ for a literal ${")
    }

    private func content(of name: String, at offset: Int) throws(PatternError) -> (
        String, (path: FilePath, trust: FileTrust)?
    ) {
        guard let path = resolve(name) else {
            throw PatternError(offset: offset, message: "${file:} needs a path, and ~ needs HOME to be set")
        }
        var (bytes, trust): ([UInt8], FileTrust)
        do {
            (bytes, trust) = try FileTrust.read(path, limit: Self.maximumFileBytes)
        } catch {
            throw PatternError(offset: offset, message: "cannot read \(path.display): \(error)")
        }
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw PatternError(offset: offset, message: "\(path.display) is not UTF-8 text")
        }
        return (text, (path, trust))
    }

    /// An absolute path without `.` and `..`; nil for an empty or too long text, and for `~/` without a home.
    func resolve(_ text: String) -> FilePath? {
        guard !text.isEmpty, text.utf8.count <= Self.longestPath else { return nil }
        if text == "~" || text.hasPrefix("~/") {
            return home?.appending(text.dropFirst(2).description).lexicallyNormalized()
        }
        return folder.pushing(FilePath(text)).lexicallyNormalized()
    }
}

extension FilePath {
    /// Whether this path is `folder` or below it; both are absolute and normalised.
    func isInside(_ folder: FilePath) -> Bool { starts(with: folder) }

    /// The components of this path below `folder`, which contains it.
    func components(below folder: FilePath) -> [FilePath.Component] {
        Array(components.dropFirst(folder.components.count))
    }
}
