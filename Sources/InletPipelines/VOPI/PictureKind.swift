internal import InletTransfer

/// What a job's file is, by its name and by its first bytes: whatever answers in the store's place with a 200, such as a
/// proxy's page, is no picture.
enum PictureKind: String, Sendable {
    case png, jpeg, gif, webp, bmp, tiff, avif, svg, mp4

    /// - Parameter ending: of a name, in lower case and without its dot.
    init?(ending: String) {
        switch ending {
        case "jpg": self = .jpeg
        case "tif": self = .tiff
        default: self.init(rawValue: ending)
        }
    }

    /// - Parameter head: the first bytes of a file.
    init?(head: [UInt8]) {
        func has(_ bytes: some Sequence<UInt8>, at offset: Int = 0) -> Bool {
            head.dropFirst(offset).starts(with: bytes)
        }
        if has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if has([0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if has("GIF87a".utf8) || has("GIF89a".utf8) {
            self = .gif
        } else if has("RIFF".utf8), has("WEBP".utf8, at: 8) {
            self = .webp
        } else if has("BM".utf8) {
            self = .bmp
        } else if [[0x49, 0x49, 0x2A, 0], [0x49, 0x49, 0x2B, 0], [0x4D, 0x4D, 0, 0x2A], [0x4D, 0x4D, 0, 0x2B]]
            .contains(where: { has($0) })
        {
            self = .tiff
        } else if has("ftyp".utf8, at: 4) {
            self = ["avif", "avis", "mif1"].contains { has($0.utf8, at: 8) } ? .avif : .mp4
        } else if ["moov", "mdat", "wide", "free", "skip"].contains(where: { has($0.utf8, at: 4) }) {
            self = .mp4
        } else if Self.isSVG(head) {
            self = .svg
        } else {
            return nil
        }
    }

    /// The root of an SVG may stand behind a declaration, comments and a document type.
    private static func isSVG(_ head: [UInt8]) -> Bool {
        let text = String(decoding: head, as: UTF8.self).lowercased()
        return text.drop { $0.isWhitespace || $0 == "\u{FEFF}" }.hasPrefix("<") && text.contains("<svg")
            && !text.contains("<html")
    }

    /// Why what was fetched is not the file of that name; nil where it is.
    ///
    /// - Parameter ending: nil where the server gave the name none that says what it is: any picture will do then.
    static func objection(to fetched: DownloadHead, ending: String?) -> String? {
        if fetched.bytes.isEmpty { return "it is empty" }
        let (named, found) = (ending.flatMap { PictureKind(ending: $0) }, PictureKind(head: fetched.bytes))
        if let type = fetched.type, !isPlausible(type, found) { return "it came as '\(type)', which is no picture" }
        guard let found else { return "its first bytes are those of no picture" }
        // A server may name its pictures wrongly: what a checksum proves to be the store's is nobody else's answer.
        guard let named, named != found, !fetched.isProved else { return nil }
        return "its first bytes are those of a \(found.rawValue) file"
    }

    private static func isPlausible(_ type: String, _ found: PictureKind?) -> Bool {
        if type.hasPrefix("image/") || type.hasPrefix("video/") || type.hasSuffix("/octet-stream") { return true }
        return found == .svg && ["text/xml", "application/xml", "text/plain"].contains(type)
    }
}
