internal import InletCore

/// The files that a GigHive server takes, by its default lists of extensions.
enum GigHiveMedia {
    private static let audio = words("mp3 wav flac aac m4a m4p aif aifc aiff ogg oga au m2a wma")
    private static let video = words(
        "mp4 mov mkv webm m4v avi mpg mpeg ts m2t m2ts ogv mxf flv rm rmvb rv wmv vob m2v bup ifo")

    /// What the IANA registry knows of them and general tables leave out.
    private static let rare = [
        "m4p": "audio/mp4", "m2a": "audio/mpeg", "au": "audio/basic", "m2t": "video/mp2t",
        "rv": "video/vnd.rn-realvideo",
        "rm": "application/vnd.rn-realmedia", "rmvb": "application/vnd.rn-realmedia-vbr",
    ]

    /// Whether the server takes a file with this extension (lower case, without the dot).
    static func takes(_ ext: String) -> Bool { audio.contains(ext) || video.contains(ext) }

    /// What to declare for the file's part. The server takes audio or video from it, and the rest from the extension.
    static func declaredType(_ ext: String, mediaType: String) -> String {
        mediaType == MediaType.unknown ? rare[ext] ?? mediaType : mediaType
    }

    /// Why the file will not be taken, or nil.
    static func objection(to name: FileName) -> String? {
        let ext = name.plainExtension
        if takes(ext) { return nil }
        let shown = DisplayText.escape(name.bytes)
        if ext.isEmpty { return "\(shown) has no extension; the server tells audio and video by it" }
        let hint =
            Suggestion.nearest(to: ext, in: (audio.union(video)).sorted()).map { "; did you mean '.\($0)'?" } ?? ""
        return "\(shown): the server takes no '.\(DisplayText.escape(ext))' files, only audio and video\(hint)"
    }

    private static func words(_ text: String) -> Set<String> { Set(text.split(separator: " ").map(String.init)) }
}
