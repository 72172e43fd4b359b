# "X,residual,weight,y" of every mixture of types that is compiled, where void is no residual: those that are used OFTEN,
# and the others.
set(OFTEN)
set(SELDOM)
set(TYPES float32 float16 bfloat16)
foreach(type ${TYPES})
  list(APPEND OFTEN ${type},void,${type},${type} ${type},${type},${type},${type})
endforeach()

if(NOT RMS_NORM_TYPES)
  set(RMS_NORM_TYPES usual)
endif()
if(RMS_NORM_TYPES STREQUAL "usual")
  foreach(half float16 bfloat16)
    list(APPEND SELDOM
         # the weight in float32
         ${half},void,float32,${half} ${half},${half},float32,${half}
         # all but the weight in float32
         float32,void,${half},float32 float32,float32,${half},float32
         # x in float32, and the result of 16 bits; the residual in float32
         float32,void,${half},${half} ${half},float32,${half},${half}
         # a branch of autocast: the residual and the weight in float32
         ${half},float32,float32,${half})
  endforeach()
elseif(RMS_NORM_TYPES STREQUAL "all")
  foreach(x ${TYPES})
    foreach(residual void ${TYPES})
      foreach(weight ${TYPES})
        foreach(y ${TYPES})
          list(APPEND SELDOM "${x},${residual},${weight},${y}")
        endforeach()
      endforeach()
    endforeach()
  endforeach()
  list(REMOVE_ITEM SELDOM ${OFTEN})
else()
  message(FATAL_ERROR "RMS_NORM_TYPES=${RMS_NORM_TYPES} is neither usual nor all")
endif()
