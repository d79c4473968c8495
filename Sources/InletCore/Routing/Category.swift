/// The first folder of a key, by what kind of file it is.
package enum Category {
    /// `images`, `videos`, `documents`, `models` or `audio`, and `uploads` for everything else. Case does not count.
    package static func byExtension(_ ext: String) -> String { table[ext.lowercased()] ?? "uploads" }

    private static let table: [String: String] = {
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
