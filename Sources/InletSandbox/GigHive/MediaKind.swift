/// Whether a file is audio or video, as the application decides it.
enum MediaKind: String, Codable, Sendable {
    case audio
    case video

    private static let audioExtensions: Set<String> = [
        "mp3", "wav", "flac", "aac", "m4a", "m4p", "aif", "aifc", "aiff", "ogg", "oga", "au", "m2a", "wma",
    ]
    private static let videoExtensions: Set<String> = [
        "mp4", "mov", "mkv", "webm", "m4v", "avi", "mpg", "mpeg", "ts", "m2t", "m2ts", "ogv", "mxf", "flv", "rm",
        "rmvb",
        "rv", "wmv", "vob", "m2v", "bup", "ifo",
    ]
    private static let containers: Set<String> = ["application/ogg", "application/mxf"]

    /// - Parameters:
    ///   - detected: The type that the bytes show.
    ///   - declared: The type that the client gave.
    /// - Throws: 400 for what is neither by type nor by extension.
    static func of(
        detected: String, declared: String, fileExtension: String
    ) throws(GigHiveRefusal) -> MediaKind {
        let known = audioExtensions.contains(fileExtension) || videoExtensions.contains(fileExtension)
        let isMedia = ["audio/", "video/"].contains { detected.hasPrefix($0) } || containers.contains(detected)
        guard known || isMedia else { throw .badRequest("Unsupported media type") }
        if declared.lowercased().hasPrefix("audio/") { return .audio }
        if declared.lowercased().hasPrefix("video/") { return .video }
        if audioExtensions.contains(fileExtension) { return .audio }
        if videoExtensions.contains(fileExtension) { return .video }
        throw .badRequest("Unsupported media type")
    }

    /// The type that the first bytes of a file show; enough for the formats that a watch folder sees.
    static func detect(_ head: [UInt8]) -> String {
        func holds(_ text: String, at offset: Int) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }
        if holds("ftyp", at: 4) {
            if holds("qt  ", at: 8) { return "video/quicktime" }
            return holds("M4A ", at: 8) ? "audio/mp4" : "video/mp4"
        }
        if holds("RIFF", at: 0) { return holds("WAVE", at: 8) ? "audio/x-wav" : "video/x-msvideo" }
        if holds("ID3", at: 0) || head.starts(with: [0xFF, 0xFB]) { return "audio/mpeg" }
        if holds("fLaC", at: 0) { return "audio/flac" }
        if holds("OggS", at: 0) { return "application/ogg" }
        if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return "video/x-matroska" }
        let isText = !head.isEmpty && head.allSatisfy { $0 >= 0x20 && $0 < 0x7F || (9...13).contains($0) }
        return isText ? "text/plain" : "application/octet-stream"
    }
}
