import InletCore
package import SystemPackage

/// Finds the physical disks below a folder: what is lost together with one of them.
///
/// The names are for people and for comparing: `disk sda (WDC WD40EFRX)`, `server nas`, `pool tank`, `memory`. Disks that
/// a hypervisor, a RAID controller or an iSCSI server makes up count as disks: nothing tells what is below them.
package struct PhysicalDisks: Sendable {
    /// sysfs(5).
    private let system: FilePath
    private let mounts: MountTable

    package init(system: FilePath = "/sys", mounts: MountTable) {
        self.system = system
        self.mounts = mounts
    }

    /// By the present mounts. Throws where /proc is not mounted. Blocks.
    package static func current() throws(SystemError) -> PhysicalDisks {
        PhysicalDisks(mounts: try MountTable.current())
    }

    /// The disks below `folder`, which may not exist yet; empty where they are unknown. Blocks; reads nothing on them.
    package func disks(of folder: FilePath) -> Set<String> { disks(of: folder, depth: 0) ?? [] }

    /// No stack of layers is higher.
    private static let mostLayers = 16

    /// nil where any of them is unknown.
    private func disks(of folder: FilePath, depth: Int) -> Set<String>? {
        guard depth < Self.mostLayers, let mount = mounts.mount(of: Self.resolved(folder)) else { return nil }
        switch mount.type {
        case "tmpfs", "ramfs", "hugetlbfs": return [Self.memory]
        case "zfs": return mount.source.components.first.map { ["pool \($0.string)"] }
        case "overlay":
            guard let upper = mount.options.first(where: { $0.name == "upperdir" }) else { return nil }
            return disks(ofLayers: [FilePath(bytes: upper.value)], depth)
        case "btrfs", "bcachefs": return disks(ofDevices: mount, depth)
        default:
            // Linux numbers file systems without a block device of their own from 0:1.
            if mount.major != 0 { return disks(ofBlock: "\(mount.major):\(mount.minor)", depth) }
            return Self.servers(mount) ?? disks(ofLayers: Self.layers(mount), depth)
        }
    }

    /// As far as it exists, without symlinks.
    private static func resolved(_ folder: FilePath) -> FilePath {
        var (found, missing) = (folder, FilePath())
        while !found.isEmpty, found != "/" {
            if let real = found.realPath { return real.pushing(missing) }
            guard let name = found.lastComponent else { break }
            missing = FilePath(root: nil, [name]).pushing(missing)
            found.removeLastComponent()
        }
        return folder
    }

    private static let memory = "memory"

    // MARK: - Other machines

    /// `nas:/export`, `//nas/share`, `user@nas:/folder`, `[fd00::1]:/export`, and the address that the kernel found for
    /// it: one server may have several names. nil for another form.
    private static func servers(_ mount: MountTable.Mount) -> Set<String>? {
        let source = mount.source.string
        guard mount.type != "fuse.mergerfs", let host = host(in: source) else { return nil }
        let address = mount.options.first { $0.name == "addr" }.map { String(decoding: $0.value, as: UTF8.self) }
        let names = Set([host, address].compactMap(\.self).flatMap { CopyCount.disks(ofServer: $0) })
        return names.isEmpty ? nil : names
    }

    private static func host(in source: String) -> String? {
        let host: Substring?
        if source.hasPrefix("//") {
            // A share's user may stand before its server.
            host = source.dropFirst(2).split(separator: "/").first?.split(separator: "@").last
        } else if source.hasPrefix("/") {
            host = nil
        } else if let start = source.firstIndex(of: "["), let end = source.firstIndex(of: "]"), start < end {
            host = source[source.index(after: start)..<end]
        } else if let colon = source.firstIndex(of: ":") {
            host = source[..<colon].split(separator: "@").last
        } else {
            host = nil
        }
        return host.flatMap { $0.isEmpty ? nil : String($0) }
    }

    // MARK: - Layers

    /// The folders or devices that a file system in user space shows at another place: bindfs has one, mergerfs several.
    private static func layers(_ mount: MountTable.Mount) -> [FilePath] {
        mount.source.string.split(separator: ":").map { FilePath(String($0)) }
    }

    private func disks(ofLayers layers: [FilePath], _ depth: Int) -> Set<String>? {
        var all: Set<String> = []
        for layer in layers {
            guard layer.isAbsolute, layer.realPath != nil, let disks = disks(of: layer, depth: depth + 1) else {
                return nil
            }
            all.formUnion(disks)
        }
        return all.isEmpty ? nil : all
    }

    // MARK: - Block devices

    /// A file system of several devices, whose number is none of theirs.
    private func disks(ofDevices mount: MountTable.Mount, _ depth: Int) -> Set<String>? {
        let sources = mount.source.string.split(separator: ":").compactMap {
            FilePath(String($0)).resolved.lastComponent
        }
        guard !sources.isEmpty else { return nil }
        let names = siblings(of: sources[0].string) ?? sources.map(\.string)
        return disks(ofBlocks: names.map { system.pushing("class/block").appending($0) }, depth)
    }

    /// The devices of the btrfs that `device` belongs to.
    private func siblings(of device: String) -> [String]? {
        names(in: system.pushing("fs/btrfs"))
            .map { names(in: system.pushing("fs/btrfs").appending($0).appending("devices")) }
            .first { $0.contains(device) }
    }

    /// - Parameter number: `MAJOR:MINOR`.
    private func disks(ofBlock number: String, _ depth: Int) -> Set<String>? {
        disks(ofBlocks: [system.pushing("dev/block").appending(number)], depth)
    }

    /// - Parameter links: what leads to devices' folders in sysfs.
    private func disks(ofBlocks links: [FilePath], _ depth: Int) -> Set<String>? {
        guard depth < Self.mostLayers else { return nil }
        var all: Set<String> = []
        for link in links {
            guard let device = link.realPath, let disks = disks(below: device, depth) else { return nil }
            all.formUnion(disks)
        }
        return all.isEmpty ? nil : all
    }

    /// - Parameter device: its folder in sysfs.
    private func disks(below device: FilePath, _ depth: Int) -> Set<String>? {
        var device = device
        if FileLook.mayBeThere(RootedPath(device, "partition")) { device.removeLastComponent() }
        let slaves = names(in: device.appending("slaves"))
        if !slaves.isEmpty {
            return disks(ofBlocks: slaves.map { device.appending("slaves").appending($0) }, depth + 1)
        }
        if let file = text(device.pushing("loop/backing_file")) {
            return file.hasPrefix("/") ? disks(of: FilePath(file), depth: depth + 1) : nil
        }
        guard let name = device.lastComponent?.string else { return nil }
        if name.hasPrefix("zram") || name.hasPrefix("ram") { return [Self.memory] }
        let model = text(device.pushing("device/model")) ?? text(device.pushing("device/name"))
        return ["disk \(Self.withoutNamespace(name))" + (model.map { " (\($0))" } ?? "")]
    }

    /// `nvme0` for `nvme0n1`: the namespaces of a drive are parts of it.
    private static func withoutNamespace(_ name: String) -> String {
        guard name.hasPrefix("nvme"), let end = name.dropFirst(4).firstIndex(of: "n") else { return name }
        return String(name[..<end])
    }

    private func names(in folder: FilePath) -> [String] {
        var found: [String] = []
        // Most devices have no such folder.
        guard var names = try? DirectoryStream(folder) else { return [] }
        while let entry = try? names.next() { found.append(entry.name.string) }
        return found.sorted()
    }

    private func text(_ file: FilePath) -> String? {
        let bytes = DurableFile.readIfPossible(file, limit: 8192)
        let text = DisplayText.escape((bytes ?? []).prefix { $0 != UInt8(ascii: "\n") })
        let words = text.split(separator: " ").joined(separator: " ")
        return words.isEmpty ? nil : words
    }
}
