import SystemPackage

@testable import InletCore
@testable import InletPipelines
@testable import InletTransfer

/// Throws unless a text may stand on a terminal, in a log and in a page: no control characters and no marks that turn
/// the order of what is read (Unicode's Bidi_Control).
func isHarmless(_ text: String) throws(Broken) {
    let found = text.unicodeScalars.first { scalar in
        scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            || [0x200B, 0x2028, 0x2029, 0xFEFF].contains(scalar.value)
    }
    if let found { throw Broken("U+\(String(found.value, radix: 16)) in a text for people") }
}

extension FuzzTarget {
    /// Names of files, and the patterns that they meet.
    static let names = [
        FuzzTarget("template", longest: 2048) { bytes throws(Broken) in
            let (first, rest) = halves(bytes)
            guard let template = try? KeyTemplate(String(decoding: first, as: UTF8.self)) else { return }
            try keys(of: template, Array(rest))
        },
        FuzzTarget("glob", longest: 1024) { bytes throws(Broken) in
            let (first, rest) = halves(bytes)
            guard let glob = try? GlobPattern(String(decoding: first, as: UTF8.self)) else { return }
            let path = rest.filter { $0 != 0 }
            let isMatch = glob.matches(path, isDirectory: false)
            try promise(glob.matches(path, isDirectory: false) == isMatch, "two answers")
            if glob.matches(path, isDirectory: true), !path.isEmpty {
                try promise(
                    glob.matches(path + Array("/below".utf8), isDirectory: false),
                    "what is below a match does not match")
            }
            _ = try? RootPattern(FilePath(bytes: first))
        },
        FuzzTarget("names", longest: 1024) { bytes throws(Broken) in try name(Array(bytes)) },
        FuzzTarget("urls", longest: 2048) { bytes throws(Broken) in
            let (first, rest) = halves(bytes)
            try url(String(decoding: first, as: UTF8.self), String(decoding: rest, as: UTF8.self))
        },
    ]

    /// The first line, and what is behind it.
    private static func halves(_ bytes: UnsafeRawBufferPointer) -> (first: [UInt8], rest: [UInt8]) {
        let first = bytes.prefix { $0 != UInt8(ascii: "\n") }
        return (Array(first), Array(bytes.dropFirst(first.count + 1)))
    }

    /// The key's rules hold for any name below any root.
    private static func keys(of template: KeyTemplate, _ path: [UInt8]) throws(Broken) {
        let fields = KeyFields(
            path: FilePath(bytes: path).lexicallyNormalized(), modified: 1_795_219_200_000_000_000, owner: "o/../o",
            category: "videos", sha256: Digest(.sha256, Array(repeating: 7, count: 32)),
            admitted: WallTime(milliseconds: 1_795_219_200_000), sequence: 7, captured: .unknown, zone: "Europe/Berlin",
            volume: "EOS\u{1B}[2J")
        let key = template.key(fields)
        try promise(key == template.key(fields), "two keys of one file")
        try promise((1...1024).contains(key.utf8.count), "a key of \(key.utf8.count) bytes")
        try isKey(key)
        try isKey(KeyTemplate.disambiguated(key, number: 2))
        try promise(
            template.text(fields).unicodeScalars.allSatisfy { $0.properties.generalCategory != .control },
            "a control character in a field")
    }

    /// Nothing that leads out of a folder, and nothing that a store or a header could read otherwise.
    private static func isKey(_ key: String) throws(Broken) {
        let parts = key.split(separator: "/", omittingEmptySubsequences: false)
        try promise(parts.allSatisfy { !["", ".", ".."].contains($0) }, "no name: \(key)")
        try isHarmless(key)
        try promise(!key.utf8.contains(UInt8(ascii: "\\")), "a backslash in \(key)")
    }

    /// A name as it goes to people, into a form, a tus header, a URL and a log line.
    private static func name(_ bytes: [UInt8]) throws(Broken) {
        try isHarmless(DisplayText.escape(bytes))
        let form = FormData.escaped(bytes)
        try promise(
            form.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }, "a form's line ends early")
        let field = Tus.metadata([("filename", bytes), ("filetype", Array("video/mp4".utf8))])
        try promise(field.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "a header's line ends early")
        try promise(field.split(separator: ",").count == 2, "a third piece of metadata")
        let text = String(decoding: bytes, as: UTF8.self)
        try promise(Percent.decode(Percent.encode(text[...])[...]) == text, "percent-encoding lost something")
        var reader = JSONReader(Array(JSONString.quote(text).utf8))
        try promise((try? reader.value()) == .string(text), "a log line that says something else")
        if let written = XMLText.writable(bytes) {
            try promise(written == text, "XML that says something else")
        }
    }

    /// A server's link, taken as the agent takes it: never closer to us than the server is, and never less safe.
    private static func url(_ base: String, _ reference: String) throws(Broken) {
        guard let api = try? HTTPURL(base, rules: .configured(allowHTTP: true)) else { return }
        for text in [reference, HTTPURL.resolved(reference, at: api.text)] {
            guard let link = try? HTTPURL(text, rules: .sentByServer(at: api, allowHTTP: true)) else { continue }
            try promise(api.scheme == "http" || link.scheme == "https", "\(text) is less safe than \(base)")
            let (here, there) = (HostScope(api.host), HostScope(link.host))
            // Whoever is near may name his network; nobody but it itself may name an address of one line, of a cloud's
            // own, or this machine.
            let isFar = there == .anywhere || there == .privateNetwork && here != .anywhere
            try promise(isFar || here == there, "\(text) is closer than \(base)")
            try promise(link.text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }, "a line end in \(link.text)")
            try isHarmless(DisplayText.escape(link.redacted))
        }
        _ = try? Tus.id(reference, below: api)
    }
}
