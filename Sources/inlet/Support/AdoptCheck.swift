import InletCore
import InletPipelines
import SystemPackage

/// Whether `adopt_check` can find anything: by keys that say the same every time, at destinations that can be asked.
enum AdoptCheck {
    static func run(_ settings: Settings, _ destinations: [Destination], _ findings: inout Findings) {
        guard settings.watch.contains(where: \.adoptCheck) else { return }
        let asked = destinations.filter { ($0.pipeline as? any DeliveryVerifying)?.findsByKey == true }.map(\.name)
        for route in settings.routes {
            let name = "adopt_check, route \(route.name)"
            if !isLasting(route.key) {
                findings.add(
                    .warning, name,
                    "the key '\(route.key.text)' is another one each time, so that no destination has a file under it: all "
                        + "are sent")
            }
            if !route.to.contains(where: asked.contains) {
                findings.add(
                    .warning, name,
                    "none of its destinations can be asked what others have sent: all its files are taken to be there")
            }
        }
    }

    /// Whether a file has the same key another day, at another hour, minute and second.
    private static func isLasting(_ key: KeyTemplate) -> Bool {
        let days: [Int64] = [0, 400 * 86_400_000 + 3_661_001]
        let keys = days.enumerated().map { number, time in
            key.key(
                KeyFields(
                    path: "a/b", modified: 0, category: "c", admitted: WallTime(milliseconds: time),
                    sequence: Int64(number), zone: "UTC"))
        }
        return keys[0] == keys[1]
    }
}
