internal import InletCore
package import InletLinux

/// The make and the model of the camera, as a file's metadata has them.
///
/// Reads EXIF in all formats of `CaptureDate`, QuickTime's and MP4's metadata, and the XML of Sony's cameras, in the clip
/// or as a file of its own. At most `BoundedBytes.maximumBytes` are read.
package struct CameraTags: Sendable, Hashable {
    package var make: String?
    package var model: String?

    /// Without values if the file has none, is damaged or of another format. Blocks.
    ///
    /// - Throws: Only if the file cannot be read.
    package static func read(from source: SourceFile) throws(SystemError) -> CameraTags {
        try read(BoundedBytes(source))
    }

    static func read(_ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        let head = try bytes.read(upTo: 16, at: 0)
        if BoxType.opensFile(head) { return try MovieTags.read(bytes) }
        if ClipXML.opensFile(head) { return ClipXML.tags(try bytes.read(upTo: ClipXML.maximumBytes, at: 0)) }
        return try ExifBlock.find(head, bytes)?.cameraTags ?? CameraTags()
    }

    /// Those of `other` take the places that are free.
    fileprivate mutating func fill(_ other: CameraTags) { (make, model) = (make ?? other.make, model ?? other.model) }
}

/// The camera in a file made of boxes: see `MovieDates`.
private enum MovieTags {
    static func read(_ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        var tags = CameraTags()
        var walk = BoxIterator(bytes, in: 0..<bytes.size)
        while tags.model == nil, let box = try walk.next() {
            switch box.type {
            case "meta":
                tags.fill(
                    try MovieDates.exif(inItemsOf: box, bytes).flatMap(ExifFields.init(block:))?.cameraTags
                        ?? CameraTags())
                tags.fill(try xml(in: box, bytes))
            case "moov": tags.fill(try inMovie(box, bytes))
            default: continue
            }
        }
        return tags
    }

    private static func inMovie(_ movie: Box, _ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        var tags = CameraTags()
        var walk = BoxIterator(bytes, in: movie.content)
        while tags.model == nil, let box = try walk.next() {
            switch box.type {
            case "meta":
                tags.fill(try inMetadata(box, bytes))
                tags.fill(try xml(in: box, bytes))
            case "udta": tags.fill(try inUserData(box, bytes))
            case "uuid":
                tags.fill(
                    try MovieDates.canonBlock("CMT1", in: box, bytes).flatMap(ExifFields.init(block:))?.cameraTags
                        ?? CameraTags())
            default: continue
            }
        }
        return tags
    }

    /// Apple's keys, then Android's.
    private static func inMetadata(_ meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        var tags = CameraTags()
        for maker in ["com.apple.quicktime.", "com.android."] where tags.model == nil {
            let make = maker == "com.android." ? "manufacturer" : "make"
            tags.fill(
                CameraTags(
                    make: try MovieDates.value(of: maker + make, in: meta, bytes).flatMap(text),
                    model: try MovieDates.value(of: maker + "model", in: meta, bytes).flatMap(text)))
        }
        return tags
    }

    /// QuickTime's `©mak` and `©mod`, DJI's `©mdl`, FFmpeg's `meta`, and the JPEG in Canon's `CNTH`.
    private static func inUserData(_ data: Box, _ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        var tags = CameraTags()
        var walk = BoxIterator(bytes, in: data.content)
        while tags.model == nil || tags.make == nil, let box = try walk.next() {
            switch box.type.code {
            case 0xA96D_616B: tags.fill(CameraTags(make: try userText(box, bytes)))
            case 0xA96D_6F64, 0xA96D_646C: tags.fill(CameraTags(model: try userText(box, bytes)))
            case BoxType("meta").code: tags.fill(try inMetadata(box, bytes))
            case BoxType("CNTH").code:
                guard let picture = try bytes.first("CNDA", in: box.content) else { continue }
                tags.fill(
                    try ExifBlock.inJPEG(at: picture.content.lowerBound, bytes).flatMap(ExifFields.init(block:))?
                        .cameraTags
                        ?? CameraTags())
            default: continue
            }
        }
        return tags
    }

    /// A text after its length and language, of 16 bits each.
    private static func userText(_ box: Box, _ bytes: BoundedBytes) throws(SystemError) -> String? {
        let content = try bytes.read(upTo: Int(min(box.length, 4 + 256)), at: box.content.lowerBound)
        guard content.count > 4 else { return nil }
        return text(content.dropFirst(4).prefix(Int(content.bigEndian(2, at: 0))))
    }

    /// Sony's `NonRealTimeMeta`.
    private static func xml(in meta: Box, _ bytes: BoundedBytes) throws(SystemError) -> CameraTags {
        guard let box = try bytes.first("xml ", in: try MovieDates.children(of: meta, bytes)) else {
            return CameraTags()
        }
        return ClipXML.tags(
            try bytes.read(upTo: Int(min(box.length, Int64(ClipXML.maximumBytes))), at: box.content.lowerBound))
    }

    private static func text(_ bytes: some Sequence<UInt8>) -> String? {
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// The XML that Sony's cameras write for a clip (`NonRealTimeMeta`): `<Device manufacturer="Sony" modelName="ILME-FX6V"/>`.
private enum ClipXML {
    static let maximumBytes = 64 << 10

    static func opensFile(_ head: [UInt8]) -> Bool {
        let start = head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head[...]
        return start.starts(with: "<?xml".utf8) || start.starts(with: "<NonRealTime".utf8)
    }

    static func tags(_ xml: [UInt8]) -> CameraTags {
        let text = String(decoding: xml, as: UTF8.self)
        guard text.contains("<NonRealTimeMeta"), let start = text.firstRange(of: "<Device ") else {
            return CameraTags()
        }
        let element = text[start.upperBound...].prefix { $0 != ">" }
        return CameraTags(make: value(of: "manufacturer", in: element), model: value(of: "modelName", in: element))
    }

    private static func value(of name: String, in element: Substring) -> String? {
        guard let start = element.firstRange(of: "\(name)=") else { return nil }
        let rest = element[start.upperBound...]
        guard let quote = rest.first, quote == "\"" || quote == "'" else { return nil }
        return String(rest.dropFirst().prefix { $0 != quote })
    }
}
