/// Media types (RFC 6838) as the IANA registry has them, by a file's extension.
package enum MediaType {
    package static let unknown = "application/octet-stream"

    /// The type for `ext` (without the dot; case does not count), or `application/octet-stream`. Models that readers of
    /// the stores' services take by extension only (`ply`, `usd`, `usdc`) keep that type too.
    package static func byExtension(_ ext: String) -> String { table[ext.lowercased()] ?? unknown }

    private static let table: [String: String] = {
        var result: [String: String] = [:]
        for line in lines.split(separator: "\n") {
            let words = line.split(separator: " ")
            for ext in words.dropFirst() { result[String(ext)] = words.first.map { String($0) } }
        }
        return result
    }()

    /// The type, then its extensions.
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
