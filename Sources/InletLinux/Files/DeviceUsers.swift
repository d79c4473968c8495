import CLinux
import Glibc
import SystemPackage

/// The processes that keep a file system mounted, as far as `/proc` shows them to this user (proc(5)).
extension OpenWriters {
    /// Those with an open file or folder, a working or root folder, or a mapping on it. Asks the process host where this
    /// process has one, and no file server. Blocks.
    ///
    /// - Parameter device: its `st_dev`.
    package static func users(of device: UInt64) -> [WriterProcess] {
        ProcessHost.current?.users(of: device) ?? ownUsers(of: device)
    }

    /// The most descriptors to look at: a machine with a hundred thousand sockets costs no more than others.
    private static let mostDescriptors = 65_536
    private static let mostUsers = 16

    static func ownUsers(of device: UInt64) -> [WriterProcess] {
        var (found, left): ([WriterProcess], Int) = ([], mostDescriptors)
        do throws(SystemError) {
            var processes = try DirectoryStream("/proc")
            while let entry = try processes.next(), left > 0, found.count < mostUsers {
                guard let process = Int32(entry.name.string), uses(process, device, &left) else { continue }
                found.append(WriterProcess(process: process, name: name(of: process)))
            }
        } catch {
            // Without /proc nobody is known.
        }
        return found
    }

    private static func uses(_ process: Int32, _ device: UInt64, _ left: inout Int) -> Bool {
        let folder = FilePath("/proc/\(process)")
        if isOn(device, folder.appending("cwd")) || isOn(device, folder.appending("root")) { return true }
        do throws(SystemError) {
            var files = try DirectoryStream(folder.appending("fd"))
            while let entry = try files.next(), left > 0 {
                left -= 1
                if isOn(device, folder.appending("fd").appending(entry.name)) { return true }
            }
        } catch {
            // It has ended, or is another user's.
            return false
        }
        return maps(process, device)
    }

    private static func isOn(_ device: UInt64, _ link: FilePath) -> Bool {
        var (found, inode): (UInt64, UInt64) = (0, 0)
        return inlet_cached_status(link.string, &found, &inode) >= 0 && found == device
    }

    /// `7fac12c35000-7fac12c36000 r--s 00000000 fe:00 16239092      /srv/drop/film.mov`
    private static func maps(_ process: Int32, _ device: UInt64) -> Bool {
        let maps = DurableFile.readIfPossible(FilePath("/proc/\(process)/maps"), limit: 4 << 20) ?? []
        let numbers = [BlockDevice.major(device), BlockDevice.minor(device)].map { number in
            String(repeating: "0", count: number < 16 ? 1 : 0) + String(number, radix: 16)
        }
        let wanted = Array(" \(numbers[0]):\(numbers[1]) ".utf8)
        return maps.split(separator: UInt8(ascii: "\n")).contains { $0.prefix(80).firstRange(of: wanted) != nil }
    }
}
