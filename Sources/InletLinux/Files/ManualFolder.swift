package import SystemPackage

/// Where packages install the HTML manual.
package enum ManualFolder {
    /// Beside the running program's folder, then where the Debian package has it. The first that is there counts.
    package static let places: [FilePath] = {
        let beside = FilePath("/proc/self/exe").realPath.map {
            $0.removingLastComponent().removingLastComponent().pushing("share/inlet/manual")
        }
        let usual: FilePath = "/usr/share/inlet/manual"
        return [beside, usual].compactMap(\.self).reduce(into: []) { places, place in
            if !places.contains(place) { places.append(place) }
        }
    }()
}
