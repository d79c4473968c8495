import Foundation
import Glibc
package import SystemPackage

/// A service on a bus of its own that answers udisksctl(1) as udisks2 would, for one device. Ends with its last reference.
package final class UDisksDaemon: Sendable {
    /// For `DBUS_SYSTEM_BUS_ADDRESS`.
    package let bus: String
    private let folder: TemporaryDirectory
    private let processes: [Process]

    package static let reason: String = "needs udisksctl (udisks2), dbus-daemon and python3-dbusmock"
    package static let isAvailable: Bool = {
        let tools = ["/usr/bin/udisksctl", "/usr/bin/dbus-daemon", "/usr/bin/python3"]
        guard tools.allSatisfy({ FileManager.default.isExecutableFile(atPath: $0) }) else { return false }
        let look = process("/usr/bin/python3", ["-c", "import dbusmock.mockobject"])
        guard (try? look.run()) != nil else { return false }
        look.waitUntilExit()
        return look.terminationStatus == 0
    }()

    /// - Parameters:
    ///   - device: the path of the device that it knows.
    ///   - unmount: in Python, its answer to `Unmount`; `fail(NAME, TEXT)` raises an error of udisks2.
    ///   - powerOff: its answer to `PowerOff`.
    package init(device: FilePath, unmount: String, powerOff: String = "") async throws {
        folder = try TemporaryDirectory()
        bus = "unix:path=\(folder.path.appending("bus"))"
        let daemon = Self.process("/usr/bin/dbus-daemon", ["--session", "--nofork", "--nosyslog", "--address=\(bus)"])
        try daemon.run()
        Leash.hold(daemon.processIdentifier)
        let socket = folder.path.appending("bus").string
        try await eventually("the bus is there") { FileManager.default.fileExists(atPath: socket) }
        let ready = folder.path.appending("ready").string
        let service = Self.process(
            "/usr/bin/python3", ["-c", Self.service, bus, device.string, unmount, powerOff, ready])
        try service.run()
        Leash.hold(service.processIdentifier)
        processes = [daemon, service]
        try await eventually("the service is there") { FileManager.default.fileExists(atPath: ready) }
    }

    deinit { for process in processes { kill(process.processIdentifier, SIGKILL) } }

    private static func process(_ program: String, _ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin", "LANG": "C.UTF-8"]
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        return process
    }

    private static let service = """
        import sys, dbus, dbus.mainloop.glib, dbus.service
        import dbusmock.mockobject as mock
        from gi.repository import GLib
        address, device, unmount, power_off, ready = sys.argv[1:]
        dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
        name = dbus.service.BusName("org.freedesktop.UDisks2", dbus.bus.BusConnection(address))
        top, kind = "/org/freedesktop/UDisks2", "org.freedesktop.UDisks2."
        manager = mock.DBusMockObject(name, top, "org.freedesktop.DBus.ObjectManager", {}, None, True)
        mock.objects[top] = manager
        helper = '''
        import os, subprocess, time
        def fail(name, text):
            raise dbus.exceptions.DBusException(text, name="org.freedesktop.UDisks2.Error." + name)
        '''
        block, drive = top + "/block_devices/card", top + "/drives/card"
        path = dbus.ByteArray(device.encode() + b"\\0")
        manager.AddObject(block, kind + "Block", {
            "Device": path, "PreferredDevice": path, "Symlinks": dbus.Array([], signature="ay"),
            "Drive": dbus.ObjectPath(drive)}, [])
        mock.objects[block].AddMethod(kind + "Filesystem", "Unmount", "a{sv}", "", helper + unmount)
        manager.AddObject(drive, kind + "Drive", {"Id": "card"}, [])
        mock.objects[drive].AddMethod(kind + "Drive", "PowerOff", "a{sv}", "", helper + power_off)
        open(ready, "w").close()
        GLib.MainLoop().run()
        """
}
