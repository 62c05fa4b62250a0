#!/bin/sh
# Blender in batch: a scene made by a script, modifiers, a file saved and read again, a picture by the path tracer in
# several threads.
# Packages: blender

. "$(dirname "$0")/../lib.sh"
begin 420
need blender
version "$(blender --background --version 2>/dev/null)"

cat >"$dir/data/scene.py" <<'PY'
import hashlib
import sys

import bpy

bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
for n in range(12):
    bpy.ops.mesh.primitive_torus_add(location=(n % 4 * 3, n // 4 * 3, 0), major_segments=24 + n, minor_segments=12)
    thing = bpy.context.object
    thing.modifiers.new("sub", "SUBSURF").levels = 1
    array = thing.modifiers.new("array", "ARRAY")
    array.count = 3
    array.relative_offset_displace = (0, 0, 1.5)
bpy.ops.mesh.primitive_uv_sphere_add(location=(0, 0, 4))
bpy.ops.object.camera_add(location=(20, -20, 18), rotation=(0.95, 0, 0.78))
scene.camera = bpy.context.object
bpy.ops.object.light_add(type="SUN", location=(5, 5, 20))

bpy.ops.wm.save_as_mainfile(filepath=sys.argv[-1] + "/scene.blend")
bpy.ops.wm.open_mainfile(filepath=sys.argv[-1] + "/scene.blend")
scene = bpy.context.scene

graph = bpy.context.evaluated_depsgraph_get()
digest = hashlib.sha256()
for thing in sorted(scene.objects, key=lambda o: o.name):
    if thing.type == "MESH":
        mesh = thing.evaluated_get(graph).to_mesh()
        digest.update(("%s %d %d" % (thing.name, len(mesh.vertices), len(mesh.polygons))).encode())
        for vertex in mesh.vertices:
            digest.update(("%.4f %.4f %.4f" % tuple(vertex.co)).encode())
print("digest", len(scene.objects), digest.hexdigest()[:16])

scene.render.engine = "CYCLES"
scene.cycles.device = "CPU"
scene.cycles.samples = 4
scene.cycles.use_denoising = False
scene.render.threads_mode = "FIXED"
scene.render.threads = 4
scene.render.resolution_x = 160
scene.render.resolution_y = 120
scene.render.image_settings.file_format = "BMP"
scene.render.filepath = sys.argv[-1] + "/picture.bmp"
bpy.ops.render.render(write_still=True)
print("digest rendered")
PY

work() {
    blender --background --factory-startup -noaudio --python-exit-code 3 --python "$dir/data/scene.py" -- "$PWD" \
        >messages 2>&1
    grep '^digest' messages
    quiet messages
}

prove blender blender --background --version
compare work
same_files picture.bmp
