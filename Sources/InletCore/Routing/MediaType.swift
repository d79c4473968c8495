/// Media types (RFC 6838) of the IANA registry, by file extension.
package enum MediaType {
    package static let unknown = "application/octet-stream"

    /// The type for `ext` (without the dot, in any case), or `application/octet-stream`. Models that readers identify
    /// only by extension (`ply`, `usd`, `usdc`) keep that type too.
    package static func byExtension(_ ext: String) -> String { table[ext.lowercased()] ?? unknown }

    private static let table: [String: String] = {
        var result: [String: String] = [:]
        for line in lines.split(separator: "\n") {
            let words = line.split(separator: " ")
            for ext in words.dropFirst() { result[String(ext)] = words.first.map { String($0) } }
        }
        return result
    }()

    /// Each line: the type, then its extensions.
    private static let lines = """
        image/jpeg jpg jpeg jpe jfif
        image/png png
        image/apng apng
        image/gif gif
        image/webp webp
        image/avif avif
        image/heic heic hif
        image/heif heif
        image/bmp bmp
        image/tiff tif tiff
        image/svg+xml svg
        image/vnd.microsoft.icon ico
        image/vnd.adobe.photoshop psd
        image/jxl jxl
        image/jp2 jp2
        image/x-adobe-dng dng
        image/x-canon-cr2 cr2
        image/x-canon-cr3 cr3
        image/x-nikon-nef nef
        image/x-sony-arw arw
        image/x-fuji-raf raf
        image/x-olympus-orf orf
        image/x-panasonic-rw2 rw2
        video/mp4 mp4
        video/x-m4v m4v
        video/quicktime mov qt
        video/x-msvideo avi
        video/matroska mkv
        video/webm webm
        video/mpeg mpg mpeg mpe m2v vob
        video/mp2t ts mts m2ts
        video/x-ms-wmv wmv
        video/x-flv flv
        video/3gpp 3gp
        video/3gpp2 3g2
        video/ogg ogv
        application/mxf mxf
        audio/mpeg mp3
        audio/mp4 m4a m4b
        audio/aac aac
        audio/flac flac
        audio/wav wav wave
        audio/aiff aif aiff aifc
        audio/ogg ogg oga opus
        audio/x-ms-wma wma
        audio/matroska mka
        audio/midi mid midi
        audio/amr amr
        audio/x-caf caf
        application/pdf pdf
        application/msword doc dot
        application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
        application/vnd.ms-excel xls
        application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
        application/vnd.ms-powerpoint ppt pps
        application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
        application/vnd.oasis.opendocument.text odt
        application/vnd.oasis.opendocument.spreadsheet ods
        application/vnd.oasis.opendocument.presentation odp
        application/rtf rtf
        application/epub+zip epub
        application/postscript ps eps
        text/plain txt text log
        text/markdown md markdown
        text/csv csv
        text/tab-separated-values tsv
        text/html html htm
        text/calendar ics
        text/css css
        text/javascript js mjs
        application/xml xml
        application/json json
        application/yaml yaml yml
        message/rfc822 eml
        model/gltf-binary glb
        model/gltf+json gltf
        model/vnd.usdz+zip usdz
        model/vnd.usda usda
        model/obj obj
        model/mtl mtl
        model/stl stl
        model/3mf 3mf
        model/vnd.collada+xml dae
        model/step stp step
        model/iges igs iges
        model/x3d+xml x3d
        model/vrml wrl vrml
        application/zip zip
        application/gzip gz tgz
        application/x-tar tar
        application/x-7z-compressed 7z
        application/vnd.rar rar
        application/zstd zst
        application/x-bzip2 bz2
        application/x-xz xz
        application/wasm wasm
        """
}

/// A media type (RFC 6838), or a pattern: `video/*`, `image/jpeg`, `application/vnd.*`. `*` matches any text within its
/// half. Ignores case, and the `x-` of formerly unregistered types: `video/x-matroska` is `video/matroska`.
package struct MediaTypePattern: Sendable, Hashable {
    /// As written.
    package let text: String
    private let kind: [GlobToken]
    private let subtype: [GlobToken]

    package init(_ text: String) throws(PatternError) {
        let halves = text.lowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, halves.allSatisfy({ !$0.isEmpty }) else {
            throw PatternError(
                offset: 0, message: "a media type has two parts, as in image/jpeg; write video/* for all videos")
        }
        if let bad = text.utf8.firstIndex(where: { !Self.isAllowed($0) }) {
            throw PatternError(
                offset: text.utf8.distance(from: text.startIndex, to: bad),
                message: "use only letters, digits, '*' and ! # $ & - ^ _ . + in the two parts of a media type")
        }
        self.text = text
        kind = Self.registered(halves[0]).map { $0 == UInt8(ascii: "*") ? .anyBytes : .byte($0) }
        subtype = Self.registered(halves[1]).map { $0 == UInt8(ascii: "*") ? .anyBytes : .byte($0) }
    }

    package func matches(_ type: String) -> Bool {
        let halves = type.lowercased().split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return false }
        return GlobToken.match(kind, Self.registered(halves[0])[...])
            && GlobToken.match(subtype, Self.registered(halves[1])[...])
    }

    private static func registered(_ half: Substring) -> [UInt8] {
        Array(half.hasPrefix("x-") && half != "x-" ? half.dropFirst(2).utf8 : half.utf8)
    }

    /// RFC 6838, section 4.2, the slash, and `*`.
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$&-^_.+*/".utf8.contains(byte)
        }
    }
}

extension MediaType {
    /// The first folder of a key, by the kind of file: `images`, `videos`, `documents`, `models` or `audio`, and
    /// `uploads` for others. Ignores case.
    package static func category(byExtension ext: String) -> String { categories[ext.lowercased()] ?? "uploads" }

    private static let categories: [String: String] = {
        var result: [String: String] = [:]
        for (category, extensions) in groups {
            for ext in extensions.split(whereSeparator: \.isWhitespace) { result[String(ext)] = category }
        }
        return result
    }()

    private static let groups = [
        (
            "images",
            """
            jpg jpeg jpe jfif png apng gif webp avif heic heif hif bmp tif tiff svg svgz ico psd psb xcf jxl jp2 j2k jpf jpx
            exr hdr tga dds pbm pgm ppm pnm qoi insp eps
            3fr ari arw bay braw cr2 cr3 crw cap dcr dcs dng erf fff gpr iiq k25 kdc mdc mef mos mrw nef nrw orf ori pef ptx
            pxn r3d raf raw rw2 rwl rwz sr2 srf srw x3f
            """
        ),
        (
            "videos",
            """
            mp4 m4v mov qt avi mkv webm mpg mpeg mpe m1v m2v mpv m2p ts mts m2ts mt2s vob wmv asf flv f4v 3gp 3g2 ogv ogm mxf
            dv divx rm rmvb insv lrv lrf 360 hevc h264 h265 y4m
            """
        ),
        (
            "documents",
            """
            pdf doc docx docm dot dotx odt ott rtf txt text md markdown tex epub mobi azw3 djvu pages xls xlsx xlsm xlsb ods csv
            tsv numbers ppt pptx pptm pps ppsx odp key html htm xhtml xml json yaml yml log ps xps oxps vsd vsdx odg msg eml ics
            """
        ),
        (
            "models",
            """
            glb gltf usdz usdc usda usd obj mtl stl ply fbx dae 3ds 3mf blend abc max ma mb c4d step stp iges igs x3d wrl vrml
            las laz e57 pcd xyz pts ifc skp dwg dxf lwo off splat spz reality
            """
        ),
        (
            "audio",
            """
            mp3 m4a m4b aac flac wav wave bwf rf64 w64 aif aiff aifc caf ogg oga opus wma alac ape wv mka mid midi amr ac3 eac3
            dts dsf dff au snd mpc tta
            """
        ),
    ]
}
