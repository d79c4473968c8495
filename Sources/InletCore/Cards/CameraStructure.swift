package import SystemPackage

/// The maker or system of a camera, by the names of the folders and files that it writes to its cards. Pure: nothing is
/// read.
///
/// The folders of pictures follow DCF (CIPA DC-009): three digits and five characters of the maker's choice, below
/// `DCIM`.
package struct CameraStructure: Sendable, Hashable {
    /// `Canon`, `Sony XDCAM`, `Panasonic P2`
    package let system: String

    private init(_ system: String) { self.system = system }

    /// By the path of a file or folder on the card; the name nearest to its end decides. nil if no name tells.
    package init?(of path: FilePath) {
        let names = path.components.suffix(Self.mostNames).map { $0.string.uppercased() }
        for (index, name) in names.enumerated().reversed() {
            if let system = Self.system(name, before: index + 1 < names.count ? names[index + 1] : nil) {
                self.init(system)
                return
            }
        }
        return nil
    }

    /// By a listing of a card's first levels. nil if no name tells, or if the names tell of several makers.
    ///
    /// - Parameter paths: relative to the card's top.
    package init?(listing paths: some Sequence<FilePath>) {
        let systems = Set(paths.compactMap { CameraStructure(of: $0)?.system })
        // "Sony XDCAM" is more exact than "Sony".
        guard let longest = systems.max(by: { $0.utf8.count < $1.utf8.count }),
            systems.allSatisfy({ longest == $0 || longest.hasPrefix("\($0) ") })
        else { return nil }
        self.init(longest)
    }

    /// Deeper paths are no card's.
    private static let mostNames = 64

    private static let folders = [
        "M4ROOT": "Sony", "XDROOT": "Sony XDCAM", "BPAV": "Sony XDCAM", "PANA_GRP": "Panasonic", "ARRIRAW": "ARRI",
    ]
    private static let endings = [
        "RDM": "RED", "RDC": "RED", "R3D": "RED", "BRAW": "Blackmagic", "ARI": "ARRI", "ARX": "ARRI",
    ]
    private static let contentsOfP2: Set<String> = ["AUDIO", "CLIP", "ICON", "PROXY", "VIDEO", "VOICE"]
    /// The beginnings of DCF folders' five characters.
    private static let pictureFolders: [(String, String)] = [
        ("CANON", "Canon"), ("EOS", "Canon"), ("NIKON", "Nikon"), ("NCD", "Nikon"), ("NCZ", "Nikon"), ("ND", "Nikon"),
        ("NZ", "Nikon"), ("MSDCF", "Sony"), ("_FUJI", "Fujifilm"), ("OLYMP", "Olympus"), ("OMSYS", "OM System"),
        ("_PANA", "Panasonic"), ("LEICA", "Leica"), ("GOPRO", "GoPro"), ("MEDIA", "DJI"), ("APPLE", "Apple"),
        ("HASBL", "Hasselblad"), ("PENTX", "Pentax"), ("RICOH", "Ricoh"), ("SIGMA", "Sigma"),
    ]

    /// - Parameters:
    ///   - name: in upper case.
    ///   - next: the name after it in the path.
    private static func system(_ name: String, before next: String?) -> String? {
        if let system = folders[name] { return system }
        if name.hasPrefix("DJI_") { return "DJI" }
        if name == "CONTENTS", let next {
            // Canon's XF cameras have the same folder as Panasonic's P2.
            return next.hasPrefix("CLIPS") ? "Canon" : contentsOfP2.contains(next) ? "Panasonic P2" : nil
        }
        let parts = name.split(separator: ".")
        if parts.count > 1, let system = parts.last.flatMap({ endings[String($0)] }) { return system }
        let digits = name.utf8.prefix { (0x30...0x39).contains($0) }.count
        guard digits == 3, name.utf8.count == 8 else { return nil }
        return pictureFolders.first { name.dropFirst(3).hasPrefix($0.0) }?.1
    }
}
